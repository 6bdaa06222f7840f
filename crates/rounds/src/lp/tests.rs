//! Worked examples, and comparisons with an independent solver.

use super::*;

fn job(k: u32, rates: &[f64], columns: &mut Vec<Column>) {
    for (j, &rate) in rates.iter().enumerate() {
        let first = Member { class: k, times: 1.0, rate };
        columns.push(Column { worker_type: j as u32, copies: 1.0, width: 1.0, value: 0.0, first, second: None });
    }
}

#[test]
fn debugging() {
    let mut columns = Vec::new();
    job(0, &[1.0, 1.0], &mut columns);
    let class = Class { count: 1.0, need: Some(Need { base: 0.0, slope: 1.0 }) };
    let program = Program { capacity: vec![36.0, 36.0], classes: vec![class], columns, level: true };
    println!("{:?}", solve(&program));
}
