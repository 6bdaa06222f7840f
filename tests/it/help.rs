//! Help pages and advice: the commands that they suggest are valid.

use plimsoll::policy::{BUILT_IN, RankOrder};

use crate::docs::parse;
use crate::replay::{plimsoll, run, said};

/// Returns the text of a help page on a terminal of this width.
fn help(verb: &str, columns: &str) -> String {
    let mut command = plimsoll(&[verb, "--help"]);
    String::from_utf8_lossy(&run(command.env("COLUMNS", columns)).stdout).into_owned()
}

fn refused(args: &[&str]) -> String {
    let output = run(&mut plimsoll(args));
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
    said(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_example_is_a_command() {
    let pages = plimsoll::cli::examples();
    assert!(pages.len() > 15);
    for page in pages {
        // A backslash or a pipe at the end of a line continues the command.
        let joined = page.replace("\\\n", " ").replace("|\n", "| ");
        let commands = joined.lines().filter(|line| line.starts_with("  ") && line.contains("plimsoll "));
        assert!(commands.clone().count() > 0, "{page}");
        commands.for_each(|line| assert!(parse(line).is_ok(), "{line}"));
    }
}

#[test]
fn no_width_breaks_an_example() {
    for columns in ["30", "80", "200"] {
        let text = help("completions", columns);
        let line = "  plimsoll completions bash \\\n      > ~/.local/share/bash-completion/completions/plimsoll\n";
        assert!(text.contains(line), "{columns}: {text}");
        let text = help("replay", columns);
        assert!(
            text.contains("slot:12 \\\n      --tasks -o results/mine\n") && !text.contains("<examples"),
            "{columns}: {text}"
        );
    }
}

#[test]
fn misspelt_policies_get_a_short_answer_and_lists_are_taken_apart() {
    let replay = ["replay", "nowhere.csv", "--machines", "1x4c", "--placement", "first-fit", "--policy"];
    let with = |policy: &str| refused(&[&replay[..], &[policy]].concat());
    for (given, meant) in [("DRF", "'drf'"), ("Fifo", "'fifo'"), ("MAXMIN:cpu", "'maxmin'"), ("drff", "'drf'")] {
        let message = with(given);
        assert!(message.contains(&format!("did you mean {meant}")) && message.len() < 300, "{message}");
    }
    // A list is read as several policies, so that the only error is the missing trace.
    for list in ["drf,fifo", "maxmin:cpu,slot:2, drf", "expr:(min(held[cpu], 1)),fifo"] {
        assert!(with(list).contains("nowhere.csv"), "{}", with(list));
    }
    assert!(with("drf,fifoo").contains("unknown policy"), "{}", with("drf,fifoo"));
}

#[test]
fn wrong_commands_get_advice_that_works() {
    let message = refused(&["simulate"]);
    assert!(message.contains("'run'") && message.contains("'replay'") && !message.contains("cluster"), "{message}");
    for args in [["run", "plan.toml", "--seeds", "10"], ["replay", "t.csv", "--seeds", "10"]] {
        let message = refused(&args);
        assert!(message.contains("--set seeds=10") && !message.contains("-- --seeds"), "{message}");
    }
    let output = run(&mut plimsoll(&["policies", "maxmin:cpu"]));
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("maxmin:RESOURCE"));
    let text = help("plot", "80").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plimsoll::output::gallery::NAMES.iter().all(|name| text.contains(name)), "{text}");
}

/// A quantity that is served from its lowest value names no other direction. An order in words states its direction.
#[test]
fn the_orders_of_policies_state_their_directions() {
    for row in BUILT_IN.rows() {
        let words = |text: &str, words: &[&str]| text.split([' ', ':', ',']).any(|word| words.contains(&word));
        match row.rank {
            RankOrder::Lowest(quantity) => {
                assert!(
                    !words(quantity, &["first", "largest", "highest", "most", "least"]),
                    "{}: {quantity}",
                    row.name
                );
            }
            RankOrder::Stated(order) => assert!(words(order, &["first"]), "{}: {order}", row.name),
        }
    }
    let printed = |args: &[&str]| {
        let output = run(plimsoll(&["policies", "--wide"]).args(args));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let highest = "the largest sum of weighted factors first: age, 2^-(usage / share), priority";
    assert!(printed(&["drf"]).contains("\nLowest max_r u_r / (c_r w_r) first; Ghodsi"), "{}", printed(&["drf"]));
    assert!(printed(&["multifactor"]).contains("\nThe largest sum of weighted factors first: age"));
    assert!(printed(&["tetris"]).contains("\nOn each machine: the largest sum_r"));
    assert!(printed(&[]).contains(highest) && !printed(&[]).contains("lowest the"), "{}", printed(&[]));
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&printed(&[name, "--format", "json"])).expect("JSON")
    };
    let orders = ["drf", "multifactor"].map(|name| [json(name)["lowest_first"].clone(), json(name)["order"].clone()]);
    let lowest = ["max_r u_r / (c_r w_r)", "lowest max_r u_r / (c_r w_r) first"];
    assert_eq!(orders, [lowest, ["", highest]]);
}

#[test]
fn a_misspelt_column_of_a_figure_gets_the_nearest_ones() {
    let figure = "\n[[figure]]\nkind = \"bars\"\nx = \"policy\"\ny = \"completion_s\"\n";
    let place = crate::study_run::Scratch::new(&(crate::study_records::small() + figure));
    let message = place.refused("out", &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["did you mean 'completion_mean_s' or 'completion_s' with table = \"jobs\"?", "plimsoll schema runs)"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.len() < 600, "{message}");
    // Both pieces of advice are accepted.
    for (from, to) in [
        ("y = \"completion_s\"", "y = \"completion_mean_s\""),
        ("x = \"policy\"\ny = \"completion_s\"", "y = \"completion_s\"\nx = \"policy\"\ntable = \"jobs\""),
    ] {
        place.write("plan.toml", &(crate::study_records::small() + &figure.replace(from, to)));
        place.run(&format!("out-{}", to.len()), &["--dry-run"]);
    }
}
