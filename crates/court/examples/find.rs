use plimsoll_court::*;
fn main() {
    let mut args = std::env::args().skip(1);
    let policy = args.next().unwrap();
    let size: u32 = args.next().unwrap().parse().unwrap();
    let running: usize = args.next().unwrap().parse().unwrap();
    let registry = plimsoll_policies::Registry::default();
    let class = Class { running, urgent: args.next().is_some(), ..Class::of(&policy, size) };
    let start = std::time::Instant::now();
    let (found, played) = search(&policy, &registry, &class, &[Verdict::Livelock], &|_| Ok(())).unwrap();
    println!("{played} states in {:?}", start.elapsed());
    match found { Some(f) => println!("{}\n{} {}", f.text, f.hearing.verdict.name(), f.hearing.about), None => println!("none") }
}
