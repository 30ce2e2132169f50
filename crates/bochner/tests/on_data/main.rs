//! What is promised about the real data sets: `make check-long` runs these, and needs them (`BOCHNER_DATA`).

mod compressive_mnist;
mod data;
mod fields_on_data;
mod learners_on_data;
mod maclaurin_data;
mod planner_on_data;
mod real_data;
