//! Files of queues from the configuration of YARN's capacity scheduler: the calculator, the monitor, sums of capacities, final properties.

use crate::queues::{imported_text, printed};
use crate::replay::{plimsoll, run};

/// Returns a configuration file with these properties of the capacity scheduler.
fn capacities(properties: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| {
        format!("<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>\n")
    };
    format!("<configuration>\n{}</configuration>", properties.iter().map(line).collect::<String>())
}

/// Without a configured calculator YARN compares memory only, and the generated file has this setting. The first container that starts is
/// the one that YARN would start.
#[test]
fn yarn_s_default_calculator_is_in_the_file() {
    let text = |calculator: &[(&'static str, &'static str)]| {
        let queues = [("root.queues", "a,b"), ("root.a.capacity", "50"), ("root.b.capacity", "50")];
        let more = [("root.b.disable_preemption", "true"), ("root.queue-ordering-policy", "priority-utilization")];
        imported_text("yarn-capacity.xml", &capacities(&[&queues[..], &more, calculator].concat())).expect("queues")
    };
    let (default, dominant) = ("org.example.DefaultResourceCalculator", "org.example.DominantResourceCalculator");
    let made = text(&[]);
    assert!(made.contains("[policy]\nresources = \"memory\"\nordering = \"priority-utilization\"\n"), "{made}");
    assert!(made.ends_with("name = \"b\"\nreclaimable = false\npercent = 50\n"), "{made}");
    assert!(!made.contains("not carried over"), "{made}");
    assert_eq!(text(&[("resource-calculator", default)]), made);
    assert!(text(&[("resource-calculator", dominant)]).contains("resources = \"dominant\""));

    let state = "[capacity]\ncpu = 16\nmemory_gib = 16\n[[running]]\nname = 'ra'\ngroup = 'a'\ndemand = { cpu = 8, memory_gib = 1 }\n\
                 [[running]]\nname = 'rb'\ngroup = 'b'\ndemand = { cpu = 1, memory_gib = 4 }\n\
                 [[waiting]]\nname = 'wa'\ngroup = 'a'\ndemand = { cpu = 1, memory_gib = 8 }\n\
                 [[waiting]]\nname = 'wb'\ngroup = 'b'\ndemand = { cpu = 1, memory_gib = 8 }\n";
    let dir = tempfile::tempdir().expect("a folder");
    let started = |queues: &str| {
        std::fs::write(dir.path().join("s.toml"), format!("{state}{queues}")).expect("writable");
        let mut command = plimsoll(&["decide", "s.toml", "--policy", "yarn-capacity", "--format", "json"]);
        let answer: serde_json::Value =
            serde_json::from_str(&printed(&run(command.current_dir(dir.path())))).expect("JSON");
        answer["launched"][0]["name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(started(&made), "wa");
    assert_eq!(started(&text(&[("resource-calculator", dominant)])), "wb");
}

/// YARN preempts nothing unless its monitor is enabled, which is not the default. The generated file has the setting only if yarn-site.xml
/// is given.
#[test]
fn yarn_s_monitor_is_off_by_default() {
    let made = |monitor: &str| {
        let queues = "<property><name>yarn.scheduler.capacity.root.queues</name><value>a</value></property>\
            <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>100</value></property>";
        imported_text("yarn-capacity.xml", &format!("<configuration>{queues}{monitor}</configuration>"))
    };
    let property = |name: &str, value: &str| format!("<property><name>{name}</name><value>{value}</value></property>");
    assert!(!made("").expect("queues").contains("preemption"));
    let least = property("yarn.scheduler.minimum-allocation-mb", "512");
    let text = made(&least).expect("queues");
    assert!(
        text.contains("preemption = false\n") && text.contains("minimum_allocation = { memory_mib = 512 }"),
        "{text}"
    );
    let monitor = "yarn.resourcemanager.scheduler.monitor.enable";
    assert!(made(&property(monitor, "true")).expect("queues").contains("preemption = true\n"));
    assert!(made(&property(monitor, "yes")).expect_err("not a truth value").contains("expected true or false"));
}

/// The import refuses the sums of capacities that YARN refuses.
#[test]
fn yarn_s_capacities_sum_to_the_whole() {
    let import = |properties: &[(&str, &str)]| {
        let queues = [("root.queues", "a,b"), ("root.a.queues", "x,y")];
        imported_text("yarn-capacity.xml", &capacities(&[&queues[..], properties].concat()))
    };
    let [whole, half] = [("root.a.capacity", "100"), ("root.a.capacity", "50")];
    let (b, x, y) = (("root.b.capacity", "50"), ("root.a.x.capacity", "33.3"), ("root.a.y.capacity", "66.7"));
    let amounts = "[memory=10,vcores=1]";
    let (absolute, rest) =
        (("root.a.capacity", "[memory=2048,vcores=4]"), ("root.a.y.capacity", "[memory=1024,vcores=2]"));
    let dominant = ("resource-calculator", "DominantResourceCalculator");
    for accepted in [
        vec![half, b, x, y],
        vec![whole, x, y],
        vec![half, b, ("root.a.x.capacity", "1w"), ("root.a.y.capacity", "2w")],
        vec![("root.a.capacity", "1w"), ("root.b.capacity", "2w")],
        vec![("root.a.capacity", "0"), ("root.b.capacity", "100")],
        vec![half, b, ("root.a.allow-zero-capacity-sum", "true")],
        vec![("root.a.capacity", amounts), ("root.a.x.capacity", amounts), ("root.a.y.capacity", "0")],
        vec![half, ("root.b.capacity", "40"), x, y, ("legacy-queue-mode.enabled", "false")],
        // Only memory is checked by default. With the dominant resource calculator, more of one resource is accepted if less of the other
        // is used.
        vec![absolute, ("root.a.x.capacity", "[memory=1024,vcores=9]"), rest],
        vec![absolute, ("root.a.x.capacity", "[memory=1023,vcores=9]"), rest, dominant],
        vec![absolute, ("root.a.x.capacity", "[vcores=9]"), rest, dominant],
    ] {
        assert!(import(&accepted).is_ok(), "{accepted:?}: {:?}", import(&accepted));
    }
    for (refused, said) in [
        (
            vec![half, ("root.b.capacity", "40"), x, y],
            "line 4, column 1: capacity: the capacities of the queues under 'root' sum to 90 %",
        ),
        (vec![half, b, x], "line 6, column 1: capacity: the capacities of the queues under 'root.a' sum to 33.3 %"),
        (vec![half, b], "the capacities of the queues under 'root.a' sum to 0 %; expected 100 %"),
        (vec![("root.a.capacity", "0"), ("root.b.capacity", "100"), x, y], "sum to 100 %; expected 0 %"),
        (
            vec![half, ("root.b.capacity", "1w"), x, y],
            "line 5, column 1: capacity: 'root.b' has a weight, and its sibling 'root.a'",
        ),
        (
            vec![half, ("root.b.capacity", amounts), x, y],
            "'root.b' has resources, and its sibling 'root.a' has a percentage",
        ),
        (vec![half, b, ("root.a.x.capacity", amounts)], "the queues under 'root.a' have resources as capacities, and"),
        (vec![("root.a.capacity", amounts), x, y], "the queues under 'root.a' do not have resources as capacities"),
        (
            vec![absolute, ("root.a.x.capacity", "[memory=1025,vcores=1]"), rest],
            "line 5, column 1: capacity: the resources of the queues under 'root.a' sum to 2.001 GiB of memory; expected at most 2 GiB",
        ),
        (
            vec![absolute, ("root.a.x.capacity", "[memory=1024,vcores=3]"), rest, dominant],
            "sum to 5 cores of cpu; expected at most 4 cores",
        ),
        (
            vec![whole, x, y, ("resource-calculator", "Fast")],
            "'Fast' is not accepted; expected DefaultResourceCalculator or",
        ),
        (vec![whole, x, y, ("root.b.disable_preemption", "no")], "'no' is not accepted; expected true or false"),
    ] {
        let error = import(&refused).expect_err(said);
        assert!(error.contains(said), "{error}\nexpected\n{said}");
    }
}

/// If a property occurs several times, the last value counts, unless an earlier one is final (`Configuration` of Hadoop).
#[test]
fn final_properties_of_hadoop_stay() {
    let property = |value: &str, is_final: &str| {
        let name = "yarn.scheduler.capacity.root.a.maximum-capacity";
        format!("<property><name>{name}</name><value>{value}</value><final>{is_final}</final></property>\n")
    };
    let import = |properties: &[String]| {
        let queues = capacities(&[("root.queues", "a"), ("root.a.capacity", "10"), ("root.a.capacity", "100")]);
        let text = queues.replace("</configuration>", &(properties.concat() + "</configuration>"));
        imported_text("yarn-capacity.xml", &text).expect("queues")
    };
    let (first, last) = ("max_percent = 60\n", "max_percent = 80\n");
    assert!(import(&[property("60", "false"), property("80", "false")]).ends_with(last));
    assert!(import(&[property("60", "false"), property("80", "true")]).ends_with(last));
    let made = import(&[property("60", "true"), property("80", "false"), property("60", "true")]);
    assert!(made.ends_with(first), "{made}");
    assert!(made.contains("line 6: yarn.scheduler.capacity.root.a.maximum-capacity is ignored: "), "{made}");
}
