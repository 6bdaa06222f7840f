//! Columns of lists in Parquet files: each list becomes a text.

use polars_arrow::array::{ListArray, Utf8ViewArray};
use polars_arrow::datatypes::ArrowDataType;
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
}
