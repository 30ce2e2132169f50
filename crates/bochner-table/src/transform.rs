//! Rows of a file as random features.
//!
//! ```
//! use bochner_table::{fit::Request, transform::Transform};
//! # let file = std::env::temp_dir().join(format!("bochner-transform-{}.csv", std::process::id()));
//! # let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, (i % 7) * (i % 7))).collect();
//! # std::fs::write(&file, format!("x,y\n{rows}"))?;
//! let model = bochner_table::fit(&file, "y", &Request { budget: 1.0, ..Request::default() })?.model;
//! assert!(Transform::of(&model)?.spec.n_components() > 0);
//! # std::fs::remove_file(file)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::map_request::{Described, MapRequest};
use crate::model::TableModel;
use crate::pipeline::{self, Preparation};
use crate::progress::Watch;
use crate::read::Data;
use crate::write::{Block, Layout, Sheet};
use bochner::feature::{Describe, FeatureMap, Spec};
use bochner::preprocess::{Preprocess, Views, median_distance};
use bochner::random::Seed;
use bochner::rows::RowSource;
use bochner::scalar::Real;
use ndarray::s;
use std::path::Path;

/// Rows transformed at once: their features stay in a few megabytes.
const PIECE: usize = 512;

/// What rows go through.
#[derive(Debug, Clone)]
pub struct Transform {
    /// First these,
    pub steps: Vec<Preprocess>,
    /// then, where there are some, these,
    pub views: Option<Views>,
    /// then this map.
    pub spec: Spec,
}

impl Transform {
    /// What the rows of a model go through.
    ///
    /// # Errors
    /// If it has no features.
    pub fn of(model: &TableModel) -> Outcome<Self> {
        let steps = model.pipeline.as_ref().map_or(Vec::new(), |p| p.steps.clone());
        let views = model.pipeline.as_ref().and_then(|p| p.views.clone());
        let described = model.model.description().map_or_else(
            || Err(Failure::Failed("the model has a map of its own, which files do not describe".into())),
            |description| Ok(description.spec()?),
        );
        Ok(Transform { steps, views, spec: described? })
    }

    /// A map by its name, for the rows of a file.
    ///
    /// # Errors
    /// If there is no such map, if it does not suit the rows, if these cannot be read, or if the user asked to stop.
    pub fn new(
        request: &MapRequest,
        data: &Data,
        preparation: Preparation,
        threshold: f64,
        seed: u64,
        watch: &dyn Watch,
    ) -> Outcome<Self> {
        if let Some(kernel) = request.operator_kernel() {
            let message = format!(
                "--kernel {kernel} relates the targets of a model; bochner fit has it, transform has no targets"
            );
            return Err(Failure::Usage(message));
        }
        let Described { mut spec, scale } = request.describe(seed)?;
        if let Some(features) = request.features {
            spec = spec.with("n_components", features.into())?;
        }
        // Maps that know numbers only, or none, keep their own unless the median was asked for.
        let (asked, median) = (scale == Some("median".into()), spec.with("length_scale", "median".into()));
        let number = asked && median.is_err();
        if asked || scale.is_none() {
            spec = median.unwrap_or(spec);
        }
        let scan = pipeline::scan(data, Seed::new(seed), 1 << 26, watch)?;
        let steps = scan.steps(data, request.preparation(preparation)?, threshold)?;
        let sample = &scan.sample.rows;
        let mut sample = sample.slice(s![..sample.nrows().min(2000), ..]).to_owned();
        steps.iter().try_for_each(|step| step.apply(sample.view_mut()))?;
        let resolved = match number {
            true => median_distance(sample.view(), Seed::new(seed), 1000)
                .and_then(|scale| spec.with("length_scale", scale.into())),
            false => spec.resolve(sample.view()),
        };
        let spec = resolved.map_err(|error| {
            // No median distance; what else there is has nothing to do with the length scale.
            let median = matches!(
                error,
                bochner::Error::Unsupported { .. } | bochner::Error::Parameter { name: "number of rows", .. }
            );
            let advice = if median { "; --length-scale NUMBER is taken as it is" } else { "" };
            match Failure::from(error) {
                Failure::Failed(why) => Failure::Failed(format!("{}: {why}{advice}", data.input().name)),
                other => other,
            }
        })?;
        Ok(Transform { steps, views: None, spec })
    }

    /// Writes the features of all rows to a file, or to standard output; numbers of rows and of features.
    ///
    /// # Errors
    /// If features are not finite, if rows cannot be read or features not be written, or if the user asked to stop.
    pub fn write<R: Real>(&self, data: &Data, out: Option<&Path>, watch: &dyn Watch) -> Outcome<(usize, usize)> {
        let columns = self.views.as_ref().map_or(data.schema().input_dim(), Views::output_dim);
        let map = self.spec.build::<R>(columns)?;
        // The features of a piece, and the names of their columns, each with some letters of its own.
        let mut features = map.room_for(PIECE)?;
        let named = bochner::memory::bytes::<(String, [u64; 4])>(&[map.output_dim()]);
        bochner::memory::need("names of columns", named, |_| "ask for fewer features".into())?;
        let names = (1..=map.output_dim()).map(|j| format!("f{j}")).collect();
        let mut sheet = Sheet::create(out, Layout { words: None, numbers: names, single: R::NAME == f32::NAME })?;
        let progress = watch.reading(data.input(), "transforming")?;
        let mut first = 0;
        data.same_rows().for_each_block(&mut |block| {
            for start in (0..block.rows.nrows()).step_by(PIECE) {
                let range = start..(start + PIECE).min(block.rows.nrows());
                let mut rows = block.rows.slice(s![range.clone(), ..]).to_owned();
                self.steps.iter().try_for_each(|step| step.apply(rows.view_mut()))?;
                if let Some(views) = &self.views {
                    rows = views.apply(rows.view())?;
                }
                let mut features = features.slice_mut(s![..range.len(), ..]);
                map.transform_into(rows.mapv(R::from_f64).view(), features.view_mut())
                    .map_err(|error| error.rows_from(first + start))?;
                let wide = features.mapv(Real::to_f64);
                sheet.push(Block { words: None, numbers: wide.view() }).map_err(pipeline::stopped)?;
            }
            first += block.rows.nrows();
            if data.input().is_stream() {
                sheet.flush().map_err(pipeline::stopped)?;
            }
            progress.read().map_err(pipeline::stopped)
        })?;
        drop(progress);
        let rows = sheet.rows();
        sheet.finish()?;
        Ok((rows, map.output_dim()))
    }
}
