//! Compares replayed rows with the rows of the original source.

use super::*;
use crate::workload::{CsvTrace, Estimated, Input, Selected};

/// Returns a trace with every column; jobs have one to three rows. The row number `wrong` has an invalid duration.
fn trace(rows: u64, wrong: Option<u64>) -> Input {
    let mut text = "job,user,submit_s,duration_s,tasks,cpu,memory_gib,stage,after,priority,gang,label,location,stable,\
                    estimate_s,deadline_s,after_job,think_s\n"
        .to_owned();
    for row in 0..rows {
        let (job, user) =
            (row - row % 4 / 2, if row % 5 == 0 { "x".repeat(row as usize % 7 + 1) } else { row.to_string() });
        let duration = if wrong == Some(row) { "long".to_owned() } else { (row % 17).to_string() };
        let name = if job % 9 == 8 { format!("{job}th") } else { format!("job{job}") };
        let optional = |on: bool, text: &str| if on { text.to_owned() } else { String::new() };
        text.push_str(&format!(
            "{name},{user},{},{duration},{},{},0.5,{},{},{},{},{},{},{},{},{},{}\n",
            row / 4,
            row % 3 + 1,
            row % 8 + 1,
            optional(row % 2 == 0, &format!("s{}", row % 6)),
            optional(row % 4 == 1, &format!("s{}", (row + 5) % 6)),
            row % 10,
            row % 11 == 0,
            optional(row % 13 == 0, "ssd"),
            optional(row % 15 == 0, "rack-1"),
            row % 12 == 0,
            optional(row > rows / 2 && row % 2 == 1, &(row % 19).to_string()),
            optional(row % 1000 == 999, &(row * 2).to_string()),
            if row % 21 == 20 { "job0,5" } else { "," },
        ));
        if row == rows / 3 {
            text.push_str("\n\n");
        }
    }
    Input::Bytes("trace.csv".into(), text.into_bytes().into())
}

type OpenSource<'a> = &'a (dyn Fn() -> Result<Box<dyn Source>> + Sync);

/// Reads two sources in the same way and compares all results until the first error.
fn compare(open: OpenSource, replayed: &mut dyn Source) {
    let mut original = open().expect("a first row");
    assert_eq!((original.dims(), original.has_preceding()), (replayed.dims(), replayed.has_preceding()));
    for step in 0u64.. {
        if step % 3 != 1 {
            let (a, b) = (original.peek().map(Option::<&_>::cloned), replayed.peek().map(Option::<&_>::cloned));
            assert_eq!(a.map_err(|error| error.to_string()), b.map_err(|error| error.to_string()));
        }
        let set = match (original.next_set(), replayed.next_set()) {
            (Err(a), Err(b)) => return assert_eq!(a.to_string(), b.to_string()),
            (a, b) => {
                let (a, b) = (a.expect("a row"), b.expect("the same row"));
                assert_eq!(a, b);
                let Some(set) = a else { return };
                set
            }
        };
        if step % 5 == 0 {
            assert!(original.peek().is_ok() == replayed.peek().is_ok());
        }
        assert_eq!(original.job_name(), replayed.job_name());
        assert_eq!(original.job_names().text(&original.job_name()), replayed.job_names().text(&replayed.job_name()));
        assert_eq!(original.users().name(set.user.0), replayed.users().name(set.user.0));
        for stage in set.stage.iter().chain(&set.after) {
            assert_eq!(original.stage_name(*stage), replayed.stage_name(*stage));
        }
        set.label.iter().for_each(|label| assert_eq!(original.label_name(*label), replayed.label_name(*label)));
        let places = set.location.iter();
        places.for_each(|place| assert_eq!(original.location_name(*place), replayed.location_name(*place)));
        if step % 1711 == 0 {
            assert_eq!(original.locate(set.row), replayed.locate(set.row));
        }
    }
}

/// Reads the rows of a source and replays them twice. Returns the number of stored rows and the bytes.
fn check(open: OpenSource, until: Time) -> (usize, u64) {
    let mut bytes = 0;
    let rows = SharedRows::read(&mut *open().expect("a first row"), until, &mut |more| {
        bytes += more;
        Ok(true)
    });
    let rows = rows.expect("no interrupt").expect("memory is left");
    let reopen = || {
        let source = open()?;
        Ok(source)
    };
    (0..2).for_each(|_| compare(open, &mut rows.source(reopen)));
    (rows.rows, bytes)
}

#[test]
fn replayed_rows_equal_the_source() {
    let input = trace(10_000, None);
    let csv = || -> Result<Box<dyn Source>> { Ok(Box::new(CsvTrace::new(&input)?)) };
    let (rows, bytes) = check(&csv, Time::NEVER);
    assert_eq!(rows, 10_000);
    assert!(bytes > 10_000 * 50 && bytes < 10_000 * 250, "{bytes}");
    let wrapped = || -> Result<Box<dyn Source>> {
        let thinned = Box::new(Selected::thinned(csv()?, 0.6, 3)?);
        Ok(Box::new(Estimated::new(thinned, "uniform:3".parse()?, 4)))
    };
    let (rows, _) = check(&wrapped, Time::NEVER);
    assert!((5_000..7_000).contains(&rows), "{rows}");
}

#[test]
fn an_invalid_row_is_reported_where_the_source_reports_it() {
    for wrong in [1, 4096, 4097] {
        let input = trace(10_000, Some(wrong));
        let csv = || -> Result<Box<dyn Source>> { Ok(Box::new(CsvTrace::new(&input)?)) };
        assert_eq!(check(&csv, Time::NEVER).0 as u64, wrong - 1);
    }
}

#[test]
fn rows_after_the_horizon_are_read_by_the_run() {
    let text = "job,user,submit_s,duration_s,cpu\n".to_owned();
    let rows = (0..9_000u64).map(|row| format!("{row},u{},{},1,1\n", row % 10, row / 2));
    let input = Input::Bytes("trace.csv".into(), (text + &rows.collect::<String>()).into_bytes().into());
    let csv = || -> Result<Box<dyn Source>> { Ok(Box::new(CsvTrace::new(&input)?)) };
    // Rows 0 to 4001 are submitted at 2000 s or before; the first later row is stored too.
    assert_eq!(check(&csv, Time::ZERO + Span::from_secs(2000)).0, 4003);
    assert_eq!(check(&csv, Time::NEVER).0, 9000);
    // If a run needs no further rows, the original source is not opened.
    let rows = SharedRows::read(&mut *csv().expect("rows"), Time::ZERO, &mut |_| Ok(true)).expect("rows");
    let rows = rows.expect("memory is left");
    let mut replayed = rows.source(|| panic!("the source is not needed"));
    for _ in 0..2 {
        replayed.next_set().expect("a row");
    }
    assert_eq!((replayed.peek().map(|set| set.map(|set| set.row)).ok(), rows.tasks()), (Some(Some(2)), None));
}

#[test]
fn too_many_rows_are_not_stored() {
    let input = trace(10_000, None);
    let mut source = CsvTrace::new(&input).expect("rows");
    let mut left = 600_000u64;
    let rows = SharedRows::read(&mut source, Time::NEVER, &mut |bytes| {
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        Ok(fits)
    });
    assert!(rows.expect("no interrupt").is_none());
}

#[test]
fn a_row_takes_the_bytes_that_the_documentation_states() {
    let row = Chunk::bytes(2) / CHUNK;
    let page = std::fs::read_to_string("../../docs/performance.md").expect("the page");
    assert!(page.contains(&format!("A stored row of two resources takes {row} bytes")), "{row} bytes");
}
