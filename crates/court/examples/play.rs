use plimsoll_court::*;
fn main() {
    let mut args = std::env::args().skip(1);
    let state = open(std::path::Path::new(&args.next().unwrap())).unwrap();
    let registry = plimsoll_policies::Registry::default();
    let bench = Bench::new(&state, &args.next().unwrap(), &registry).unwrap();
    let hearing = judge(&bench, args.next().map_or(20, |n| n.parse().unwrap())).unwrap();
    for p in &hearing.rounds {
        let n = |w: usize| &state.workloads[w].name;
        println!("round {}: running {:?} waiting {:?}", p.before.round, p.before.running.iter().map(|r| (n(r.workload), r.tasks, r.leaves)).collect::<Vec<_>>(), p.before.waiting.iter().map(|r| (n(r.workload), r.tasks)).collect::<Vec<_>>());
        let mut a = answer(&bench, &p.round); a.as_object_mut().unwrap().remove("policy");
        println!("   {a}");
    }
    println!("{:?} {} back {:?}", hearing.verdict, hearing.about, hearing.back);
}
