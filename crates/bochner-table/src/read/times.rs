//! Dates and times: how they are written, and the numbers that they become.
//!
//! A moment is a number of seconds since the first of 1970, in the zone that the cell names or, without one, as the clock has
//! it; a time of day is one since midnight.

use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// A number that is made from a date or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// Days since the first of 1970, with their fractions.
    Days,
    /// The year.
    Year,
    /// Sine of the day of the year, as a part of a circle.
    YeardaySin,
    /// Its cosine.
    YeardayCos,
    /// Sine of the day of the week; Monday is the first.
    WeekdaySin,
    /// Its cosine.
    WeekdayCos,
    /// Hours since midnight, with their fractions: of columns without days.
    Hours,
    /// Sine of the time of day.
    HourSin,
    /// Its cosine.
    HourCos,
}

impl TimePart {
    /// What is written behind the name of the column: `date:year`.
    pub fn name(self) -> &'static str {
        match self {
            TimePart::Days => "days",
            TimePart::Year => "year",
            TimePart::YeardaySin => "yearday_sin",
            TimePart::YeardayCos => "yearday_cos",
            TimePart::WeekdaySin => "weekday_sin",
            TimePart::WeekdayCos => "weekday_cos",
            TimePart::Hours => "hours",
            TimePart::HourSin => "hour_sin",
            TimePart::HourCos => "hour_cos",
        }
    }

    /// The number of a moment.
    pub(super) fn of(self, moment: &Moment) -> f64 {
        let year = TAU * moment.yearday as f64 / moment.year_days as f64;
        let week = TAU * moment.weekday as f64 / 7.0;
        let day = TAU * moment.second / DAY;
        match self {
            TimePart::Days => moment.seconds / DAY,
            TimePart::Year => moment.year as f64,
            TimePart::YeardaySin => year.sin(),
            TimePart::YeardayCos => year.cos(),
            TimePart::WeekdaySin => week.sin(),
            TimePart::WeekdayCos => week.cos(),
            TimePart::Hours => moment.second / 3600.0,
            TimePart::HourSin => day.sin(),
            TimePart::HourCos => day.cos(),
        }
    }
}

/// Seconds of a day.
pub(super) const DAY: f64 = 86400.0;
/// Moments further away are taken for mistakes; the calendar below ends here.
const FURTHEST: f64 = 1e13;

/// A moment and its place in the calendar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moment {
    seconds: f64,
    year: i64,
    /// Counted from 0.
    yearday: i64,
    year_days: i64,
    /// Monday is 0.
    weekday: i64,
    /// Of the day.
    second: f64,
}

impl Moment {
    /// The moment so many seconds after the first of 1970.
    pub(super) fn new(seconds: f64) -> Option<Self> {
        if seconds.is_nan() || seconds.abs() > FURTHEST {
            return None;
        }
        let days = (seconds / DAY).floor();
        let second = (seconds - days * DAY).clamp(0.0, DAY);
        let days = days as i64;
        let year = year_of(days);
        let first = days_of(year, 1, 1);
        let year_days = days_of(year + 1, 1, 1) - first;
        Some(Moment { seconds, year, yearday: days - first, year_days, weekday: (days + 3).rem_euclid(7), second })
    }
}

/// Days from the first of 1970 to a day of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + 365 * of_era + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn year_of(days: i64) -> i64 {
    let mut year = 1970 + (days as f64 / 365.2425).floor() as i64;
    while days_of(year, 1, 1) > days {
        year -= 1;
    }
    while days_of(year + 1, 1, 1) <= days {
        year += 1;
    }
    year
}

/// A date or a time as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Written {
    day: Day,
    /// Of the day, less what its zone is ahead.
    second: f64,
    pub(super) has_time: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Day {
    /// A time of day.
    None,
    Known(i64),
    /// Two numbers of which one is the month.
    Either(i64, i64, i64),
}

impl Written {
    /// Whether there is no day, only a time.
    pub(super) fn is_clock(&self) -> bool {
        self.day == Day::None
    }

    /// Whether days come before months: `None` where nothing tells, as no order would be wrong.
    pub(super) fn day_first(&self) -> Option<bool> {
        match self.day {
            Day::Either(first, second, _) if first != second => match (first > 12, second > 12) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a day and a month could be taken for each other.
    pub(super) fn could_be_either(&self) -> bool {
        matches!(self.day, Day::Either(first, second, _) if first != second && first.max(second) <= 12)
    }

    /// Seconds since the first of 1970, or since midnight.
    pub(super) fn seconds(&self, day_first: bool) -> Option<f64> {
        let days = match self.day {
            Day::None => 0,
            Day::Known(days) => days,
            Day::Either(day, month, year) if day_first => day_in(year, month, day)?,
            Day::Either(month, day, year) => day_in(year, month, day)?,
        };
        Some(days as f64 * DAY + self.second)
    }
}

fn day_in(year: i64, month: i64, day: i64) -> Option<i64> {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let lasts = days_of(next.0, next.1, 1) - days_of(year, month, 1);
    ((1..=12).contains(&month) && (1..=lasts).contains(&day)).then(|| days_of(year, month, day))
}

/// A date, a time of day, or both.
pub(super) fn parse(text: &str) -> Option<Written> {
    let text = text.trim();
    // Longer ones are text, and not worth the time.
    if text.len() > 40 || !text.is_ascii() || !text.bytes().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let Some(colon) = text.find(':') else {
        return Some(Written { day: day(text)?, second: 0.0, has_time: false });
    };
    let start = text[..colon].rfind(['T', 't', ' ']);
    let (date, time) = match start {
        Some(at) => (text[..at].trim_end(), &text[at + 1..]),
        None => ("", text),
    };
    let (second, ahead) = time_of_day(time)?;
    let day = if date.is_empty() { Day::None } else { day(date)? };
    Some(Written { day, second: if day == Day::None { second } else { second - ahead }, has_time: true })
}

fn number(part: &str, most: usize) -> Option<i64> {
    (!part.is_empty() && part.len() <= most && part.bytes().all(|c| c.is_ascii_digit())).then(|| part.parse().ok())?
}

fn month_by_name(part: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let name = part.trim_end_matches(['.', ',']).to_ascii_lowercase();
    let is_month =
        |month: &&str| name.len() >= 3 && (month.starts_with(&name) || (name == "sept" && month.starts_with("sep")));
    MONTHS.iter().position(is_month).map(|at| at as i64 + 1)
}

fn year(part: &str) -> Option<i64> {
    let year = number(part, 4)?;
    match part.len() {
        4 => Some(year),
        // As POSIX has it.
        2 => Some(if year < 69 { 2000 + year } else { 1900 + year }),
        _ => None,
    }
}

fn day(text: &str) -> Option<Day> {
    let sign = text.chars().find(|c| matches!(c, '-' | '/' | '.' | ' '))?;
    let parts: Vec<&str> = text.split(sign).filter(|part| !(sign == ' ' && part.is_empty())).collect();
    let known = |year, month, day| day_in(year, month, day).map(Day::Known);
    match parts[..] {
        // A month.
        [first, second] if first.len() == 4 && second.len() == 2 && sign == '-' => {
            known(number(first, 4)?, number(second, 2)?, 1)
        }
        [first, second, third] if first.len() == 4 && sign != ' ' => {
            let month = number(second, 2).or_else(|| month_by_name(second))?;
            known(number(first, 4)?, month, number(third, 2)?)
        }
        [first, second, third] => {
            let day_of = |part: &str| number(part.trim_end_matches(','), 2);
            if let (Some(day), Some(month)) = (day_of(first), month_by_name(second)) {
                return known(year(third)?, month, day);
            }
            if let (Some(month), Some(day)) = (month_by_name(first), day_of(second)) {
                return known(year(third)?, month, day);
            }
            if sign == ' ' {
                return None;
            }
            let (a, b) = (number(first, 2)?, number(second, 2)?);
            if sign == '.' {
                // Without a year of four digits 1.2.3 is the number of a version. Points go with the day first.
                return (third.len() == 4).then(|| known(year(third)?, b, a))?;
            }
            // Without a year of four digits, two of each: 1-2-3 is anything.
            if third.len() != 4 && (first.len() != 2 || second.len() != 2) {
                return None;
            }
            let year = year(third)?;
            // One of the orders has to make a day.
            (day_in(year, a, b).is_some() || day_in(year, b, a).is_some()).then_some(Day::Either(a, b, year))
        }
        _ => None,
    }
}

/// Seconds since midnight, and by how many the zone is ahead.
fn time_of_day(text: &str) -> Option<(f64, f64)> {
    let upper = text.trim().to_ascii_uppercase();
    let text = upper.strip_suffix("UTC").or_else(|| upper.strip_suffix("GMT")).or_else(|| upper.strip_suffix('Z'));
    let (text, is_zoned) = text.map_or((upper.as_str(), false), |text| (text.trim_end(), true));
    let (text, ahead) = match text.find(['+', '-']) {
        Some(_) if is_zoned => return None,
        Some(at) => (text[..at].trim_end(), zone(&text[at..])?),
        None => (text, 0.0),
    };
    let afternoon = [("AM", false), ("PM", true)].into_iter().find_map(|(end, pm)| Some((text.strip_suffix(end)?, pm)));
    let (text, afternoon) = afternoon.map_or((text, None), |(text, pm)| (text.trim_end(), Some(pm)));
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute) = (number(parts[0], 2)?, number(parts.get(1)?, 2)?);
    let second = match parts[..] {
        [_, _] => 0.0,
        [_, _, second] => {
            let second = second.replace(',', ".");
            let digits = second.bytes().all(|c| c.is_ascii_digit() || c == b'.');
            second.parse::<f64>().ok().filter(|value| digits && (0.0..61.0).contains(value))?
        }
        _ => return None,
    };
    let hour = match afternoon {
        Some(pm) if (1..=12).contains(&hour) => hour % 12 + if pm { 12 } else { 0 },
        Some(_) => return None,
        None => hour,
    };
    let midnight = hour == 24 && minute == 0 && second == 0.0;
    let fits = (hour < 24 || midnight) && minute < 60 && parts[1].len() == 2;
    fits.then_some(((hour * 3600 + minute * 60) as f64 + second, ahead))
}

/// `+02:00`, `-0530`, `+02` in seconds.
fn zone(text: &str) -> Option<f64> {
    let (sign, rest) = text.split_at(1);
    let digits = rest.replacen(':', "", 1);
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits, 2)?, 0),
        4 => (number(&digits[..2], 2)?, number(&digits[2..], 2)?),
        _ => return None,
    };
    let seconds = (hours * 3600 + minutes * 60) as f64;
    (hours <= 18 && minutes < 60).then_some(if sign == "-" { -seconds } else { seconds })
}

/// What all moments of a column have in common.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    /// Smallest and largest second, year, day of the year, day of the week and second of the day.
    ranges: [(f64, f64); 5],
}

impl Default for Spread {
    fn default() -> Self {
        Spread { ranges: [(f64::INFINITY, f64::NEG_INFINITY); 5] }
    }
}

impl Spread {
    pub(super) fn add(&mut self, moment: &Moment) {
        let Moment { seconds, year, yearday, weekday, second, .. } = *moment;
        let values = [seconds, year as f64, yearday as f64, weekday as f64, second];
        self.ranges.iter_mut().zip(values).for_each(|(range, value)| *range = (range.0.min(value), range.1.max(value)));
    }

    pub(super) fn merge(&mut self, other: &Spread) {
        for (range, other) in self.ranges.iter_mut().zip(&other.ranges) {
            *range = (range.0.min(other.0), range.1.max(other.1));
        }
    }

    /// The parts that are not the same in all rows.
    pub(super) fn parts(&self, clock: bool) -> Vec<TimePart> {
        use TimePart::{Days, HourCos, HourSin, Hours, WeekdayCos, WeekdaySin, Year, YeardayCos, YeardaySin};
        let [seconds, year, yearday, weekday, second] = self.ranges.map(|(least, most)| least < most);
        let mut parts = Vec::new();
        match clock {
            true if second => parts.push(Hours),
            false if seconds => parts.push(Days),
            _ => {}
        }
        if !clock {
            parts.extend(year.then_some(Year));
            parts.extend(yearday.then_some([YeardaySin, YeardayCos]).into_iter().flatten());
            parts.extend(weekday.then_some([WeekdaySin, WeekdayCos]).into_iter().flatten());
        }
        parts.extend(second.then_some([HourSin, HourCos]).into_iter().flatten());
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_as_people_write_them() {
        // Seconds by `date -u -d … +%s` of GNU coreutils.
        for (text, seconds) in [
            ("2020-01-31", 1_580_428_800.0),
            ("2020/01/31", 1_580_428_800.0),
            ("31.12.1999", 946_598_400.0),
            ("2020-05", 1_588_291_200.0),
            ("1-Jan-2020", 1_577_836_800.0),
            ("1 January 2020", 1_577_836_800.0),
            ("Jan 1, 2020", 1_577_836_800.0),
            ("2020-01-01T00:00:00Z", 1_577_836_800.0),
            ("2020-01-01 12:30", 1_577_881_800.0),
            ("2020-01-01T12:30:15.25", 1_577_881_815.25),
            ("2020-01-01T00:00:00+02:00", 1_577_829_600.0),
            ("2020-01-01T00:00:00-0530", 1_577_856_600.0),
            ("1969-12-31 23:59:59", -1.0),
            ("1600-02-29", -11_670_998_400.0),
            ("12:30", 45_000.0),
            ("7:05:09.25", 25_509.25),
            ("1:30 PM", 48_600.0),
            ("12:30 am", 1_800.0),
        ] {
            assert_eq!(parse(text).and_then(|w| w.seconds(true)), Some(seconds), "{text}");
        }
        for text in [
            "",
            "1.2.3",
            "1-2",
            "2020",
            "a-b-c",
            "10-19",
            "2020-13",
            "2020-02-30",
            "99:99",
            "T",
            " ",
            "1:2:3:4",
            "-",
            "/",
            "31/31/2020",
            "12:3",
            "2020-01-01T25:00",
            "1 2 3",
            "10:61",
            "5%",
            "1,5",
            "2019-02-29",
            "1:30 XM",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_order_of_days_and_months_is_told_where_it_can_be() {
        let order = |text: &str| parse(text).map(|w| (w.day_first(), w.could_be_either()));
        assert_eq!(order("25/12/2020"), Some((Some(true), false)));
        assert_eq!(order("12/25/20"), Some((Some(false), false)));
        assert_eq!(order("12/25/2020"), Some((Some(false), false)));
        assert_eq!(order("03/04/2020"), Some((None, true)));
        assert_eq!(order("04/04/2020"), Some((None, false)));
        let seconds = |text: &str, first| parse(text).and_then(|w| w.seconds(first));
        assert_eq!(seconds("03/04/2020", true), parse("2020-04-03").and_then(|w| w.seconds(false)));
        assert_eq!(seconds("03/04/2020", false), parse("2020-03-04").and_then(|w| w.seconds(false)));
        assert_eq!(seconds("25/12/2020", false), None);
    }

    #[test]
    fn the_calendar_agrees_with_itself_over_four_hundred_years() {
        let (mut days, mut weekday) = (days_of(1800, 1, 1), 2);
        for year in 1800..2200 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for yearday in 0..if leap { 366 } else { 365 } {
                let moment = Moment::new(days as f64 * DAY + 3600.0).unwrap();
                assert_eq!((moment.year, moment.yearday, moment.weekday), (year, yearday, weekday));
                assert_eq!((moment.year_days == 366, moment.second), (leap, 3600.0));
                (days, weekday) = (days + 1, (weekday + 1) % 7);
            }
        }
        assert_eq!(Moment::new(f64::NAN), None);
        assert_eq!(Moment::new(1e300), None);
    }
}
