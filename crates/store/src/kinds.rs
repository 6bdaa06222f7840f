//! Columns of lists and of timestamps in Parquet files: lists become texts, timestamps become counts of ticks since 1970.

use polars_arrow::array::{Int64Array, ListArray, Utf8ViewArray};
use polars_arrow::datatypes::{ArrowDataType, TimeUnit};
use polars_compute::cast::cast_default;

use plimsoll_sim::workload::NameList;

use crate::parquet::{StoredColumn, guarded};

impl StoredColumn {
    /// Returns whether this is a column of lists.
    pub fn has_lists(&self) -> bool {
        matches!(self.field.dtype, ArrowDataType::LargeList(_))
    }

    /// Returns the lists of a column of lists as text, with `separator` between the items; an absent list is empty.
    pub fn joined(&self, separator: &str) -> std::result::Result<NameList, String> {
        let mut values = NameList::default();
        for array in &self.arrays {
            let Some(lists) = array.as_any().downcast_ref::<ListArray<i64>>() else {
                return Err("it has no lists".to_owned());
            };
            for list in lists.iter() {
                let items =
                    list.map(|list| guarded(|| cast_default(list.as_ref(), &ArrowDataType::Utf8View))).transpose()?;
                let texts = items.iter().filter_map(|items| items.as_any().downcast_ref::<Utf8ViewArray>());
                let texts: Vec<&str> = texts.flat_map(|items| items.iter().flatten()).collect();
                values.push(&texts.join(separator));
            }
        }
        Ok(values)
    }

    /// Returns the timestamps, if this is a column of timestamps.
    pub fn timestamps(&self) -> std::result::Result<Option<Timestamps>, String> {
        let ArrowDataType::Timestamp(unit, zone) = &self.field.dtype else { return Ok(None) };
        let per_second = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let mut ticks = Vec::new();
        for array in &self.arrays {
            let array = guarded(|| cast_default(array.as_ref(), &ArrowDataType::Int64))?;
            let Some(array) = array.as_any().downcast_ref::<Int64Array>() else {
                return Err("its timestamps are no integers".to_owned());
            };
            ticks.extend(array.iter().map(Option::<&i64>::copied));
        }
        Ok(Some(Timestamps { ticks, per_second, is_utc: zone.is_some() }))
    }
}

/// The values of a column of timestamps.
pub struct Timestamps {
    /// Ticks since 1970 of each row.
    pub ticks: Vec<Option<i64>>,
    /// The number of ticks in a second.
    pub per_second: i64,
    /// Whether the ticks count from 1970 in UTC; otherwise from 1970 in local time.
    pub is_utc: bool,
}
