//! Tests of the rules of KSS: worked examples from the published scores, and the cached search compared with a slow one.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::cluster::{DevicePart, Machines, Placement};

/// A machine: free cores in thousandths, free thousandths of each device, and the devices of the tasks that run there.
type Node<'a> = (u64, &'a [u16], &'a [u64]);

fn state(rule: KssRule, nodes: &[Node], pods: PodMix) -> (Kss, Index, Hardware) {
    let mut kss = Kss::new(rule);
    let mut hardware = Hardware::new(&[1]).with_cores(Some(0));
    hardware.count_pods(pods);
    let amounts = |(cores, devices, _): &Node| {
        Resources([*cores, devices.iter().map(|free| u64::from(*free)).sum(), 0, 0, 0, 0, 0, 0])
    };
    let free: Vec<Resources> = nodes.iter().map(amounts).collect();
    for (machine, (_, devices, tasks)) in nodes.iter().enumerate() {
        hardware.push(&Resources([0, 1000 * devices.len() as u64, 0, 0, 0, 0, 0, 0]), |_| &[]).expect("whole devices");
        let used = |(device, free): (usize, &u16)| DevicePart { dim: 1, device: device as u16, milli: 1000 - free };
        hardware.allocate(machine, &devices.iter().enumerate().map(used).collect::<Vec<_>>());
        tasks.iter().for_each(|devices| kss.counted(machine, *devices, 1, false));
    }
    (kss, Index::new(2, &free), hardware)
}

/// The mix of the examples: half of the pods 4 cores and a device, 3 of 10 two cores and half a device, 2 of 10 eight cores.
fn mix() -> PodMix {
    let pod = |cores, devices, count| PodDemand { cores, devices, label: None, count };
    PodMix::new([pod(4000, 1000, 50), pod(2000, 500, 30), pod(8000, 0, 20)])
}

#[test]
fn fragments_of_a_machine_are_those_of_the_definition() {
    let cases: [(u64, &[u16], f64); 5] = [
        (16_000, &[1000, 1000], 400.0),
        (16_000, &[1000, 500], 550.0),
        (16_000, &[500, 400], 750.0),
        (1000, &[1000, 1000], 2000.0),
        (3000, &[1000, 500], 1050.0),
    ];
    for (cores, devices, expected) in cases {
        assert!((mix().fragments(0, cores, devices) - expected).abs() < 1e-9, "{cores} {devices:?}");
    }
}

#[test]
fn growth_of_fragments_becomes_a_whole_score() {
    let nodes: [Node; 3] = [(16_000, &[1000, 1000], &[]), (16_000, &[1000, 500], &[]), (16_000, &[500, 400], &[])];
    let (mut kss, index, hardware) = state(KssRule::Fgd, &nodes, mix());
    let scores = |kss: &Kss, need: [u64; 2]| (0..3).map(|m| kss.score(&index, &hardware, m, &need)).collect::<Vec<_>>();
    assert_eq!(scores(&kss, [2000, 500]), [46, 58, 58], "two cores and half a device");
    assert_eq!(kss.find(&index, &hardware, &[2000, 500], Scope::default()), Some(1), "a tie selects the lower index");
    assert_eq!(scores(&kss, [2000, 400]), [44, 56, 59], "two cores and 400 of a device");
    assert_eq!(kss.find(&index, &hardware, &[2000, 400], Scope::default()), Some(2));
    let growth: Vec<(usize, i64)> = kss.growth_scores(&hardware, 2, 16_000, &[2000, 400]).collect();
    assert_eq!(growth, [(0, 56), (1, 59)]);
    assert_eq!(scores(&kss, [4000, 1000])[..2], [54, 54], "four cores and a device");
    assert_eq!(kss.find(&index, &hardware, &[4000, 1000], Scope::default()), Some(0));
    assert_eq!(scores(&kss, [1000, 0]), [50, 50, 50], "no growth");
    // The limits of the scores 54 and 50.
    let score = |decrease: f64| score_of_growth(1000.0, 1000.0 - decrease) as i64;
    assert_eq!([160.3, 160.4, 200.6, 200.7].map(score), [53, 54, 54, 55]);
    assert_eq!([0.0, 40.0, -1.0].map(score), [50, 50, 49]);
}

/// The exact scores of a decrease of fragments by 350, and of a fitting machine.
#[test]
fn exact_scores_keep_their_decimals() {
    let nodes: [Node; 2] = [(16_000, &[1000, 500], &[]), (16_000, &[500, 400], &[])];
    let (_, index, hardware) = state(KssRule::Fgd, &nodes, mix());
    let kss = Kss::exact(KssRule::Fgd);
    let scores: Vec<i64> = (0..2).map(|machine| kss.score(&index, &hardware, machine, &[2000, 500])).collect();
    assert_eq!(scores, [58_661_758; 2], "fragments fall by 350 on both, which ties");
    let kss = Kss::exact(KssRule::BestFit);
    assert_eq!(kss.score(&index, &hardware, 0, &[8000, 500]), 90_625_000, "100 (1 - 8/128/2 - 1/8/2)");
    // The scores of both machines are cut to 71; 400 millicores more are free on the first one.
    let nodes: [Node; 2] = [(64_400, &[1000, 500], &[500]), (64_000, &[1000, 500], &[500])];
    for (kss, chosen) in [(Kss::new(KssRule::BestFit), 0), (Kss::exact(KssRule::BestFit), 1)] {
        let (_, index, hardware) = state(KssRule::BestFit, &nodes, mix());
        let mut kss = kss;
        assert_eq!(kss.find(&index, &hardware, &[8000, 500], Scope::default()), Some(chosen));
    }
}

#[test]
fn scores_of_the_other_rules_are_those_of_the_source() {
    let nodes: [Node; 5] = [
        (96_000, &[1000; 8], &[]),
        (90_000, &[1000, 1000, 1000, 1000, 1000, 1000, 1000, 400], &[600]),
        (64_000, &[1000, 500], &[500]),
        (40_000, &[1000, 600, 0, 0], &[400, 2000]),
        (96_000, &[0, 0, 0, 0, 1000, 1000, 1000, 1000], &[4000]),
    ];
    let cases: [(KssRule, [u64; 2], [i64; 5]); 10] = [
        (KssRule::BestFit, [8000, 500], [18, 24, 71, 80, 43]),
        (KssRule::DotProduct, [8000, 500], [94, 94, 97, 98, 96]),
        (KssRule::Packing, [8000, 500], [25, 49, 95, 94, 49]),
        (KssRule::Clustering, [8000, 500], [25, 76, 95, 70, 12]),
        (KssRule::BestFit, [12_000, 1000], [23, 29, 76, 85, 48]),
        (KssRule::DotProduct, [12_000, 1000], [90, 90, 96, 97, 93]),
        (KssRule::Packing, [12_000, 1000], [25, 49, 49, 49, 49]),
        (KssRule::Clustering, [12_000, 1000], [25, 1, 20, 20, 12]),
        (KssRule::BestFit, [32_000, 0], [25, 31, 78, 86, 50]),
        (KssRule::DotProduct, [32_000, 0], [90, 91, 93, 96, 90]),
    ];
    for (rule, need, expected) in cases {
        let (kss, index, hardware) = state(rule, &nodes, mix());
        let scores: Vec<i64> = (0..5).map(|machine| kss.score(&index, &hardware, machine, &need)).collect();
        assert_eq!(scores, expected, "{rule:?} {need:?}");
    }
}

#[test]
fn devices_of_another_model_are_fragments() {
    let only = |machine: u32| Some(("model=T4".to_owned(), [MachineId(machine)].into_iter().collect()));
    let pod = |cores, devices, label, count| PodDemand { cores, devices, label, count };
    let mix = PodMix::new([pod(4000, 1000, only(1), 50), pod(2000, 500, None, 30), pod(8000, 0, None, 20)]);
    assert!((mix.fragments(0, 16_000, &[1000, 1000]) - 1400.0).abs() < 1e-9);
    assert!((mix.fragments(1, 16_000, &[1000, 1000]) - 400.0).abs() < 1e-9);
}

#[test]
fn the_mix_covers_95_per_cent_of_the_pods() {
    let pod = |cores, count| PodDemand { cores, devices: 0, label: None, count };
    assert_eq!(PodMix::new([pod(1, 60), pod(2, 35), pod(3, 5)]).len(), 2);
    assert_eq!(PodMix::new([pod(1, 60), pod(2, 34), pod(3, 6)]).len(), 3);
    let tied = PodMix::new([pod(1, 45), pod(2, 45), pod(3, 10)]);
    assert_eq!(tied.0.iter().map(|kind| kind.cores).collect::<Vec<_>>(), [2, 1, 3], "the larger of equals first");
}

/// The search with cached scores finds the same machine as a search that computes every score again.
#[test]
fn cached_scores_are_current() {
    let rules = [
        (Placement::KssDotProduct, Kss::new(KssRule::DotProduct)),
        (Placement::KssGpuClustering, Kss::new(KssRule::Clustering)),
        (Placement::KssGpuPacking, Kss::new(KssRule::Packing)),
        (Placement::KssBestFit, Kss::new(KssRule::BestFit)),
        (Placement::KssFgd, Kss::new(KssRule::Fgd)),
        (Placement::KssBestFitExact, Kss::exact(KssRule::BestFit)),
        (Placement::KssFgdExact, Kss::exact(KssRule::Fgd)),
    ];
    let needs: [[u64; 2]; 6] = [[2000, 500], [2000, 300], [4000, 1000], [8000, 2000], [8000, 0], [1000, 800]];
    for (at, (placement, mut slow)) in (0..).zip(rules) {
        let mut rng = ChaCha8Rng::seed_from_u64(at);
        let capacities: Vec<Resources> = (0..30)
            .map(|_| Resources([rng.random_range(8..64) * 1000, rng.random_range(0..5) * 1000, 0, 0, 0, 0, 0, 0]))
            .collect();
        let mut hardware = Hardware::new(&[1]).with_cores(Some(0));
        capacities.iter().for_each(|capacity| hardware.push(capacity, |_| &[]).expect("whole devices"));
        hardware.count_pods(mix());
        let mut machines = Machines::new(2, placement, &capacities).with_hardware(hardware);
        let mut placed: Vec<(MachineId, usize, Vec<DevicePart>)> = Vec::new();
        let (mut found, mut vain) = (0, 0);
        for _ in 0..2000 {
            if rng.random_bool(0.4) && !placed.is_empty() {
                let (machine, kind, parts) = placed.swap_remove(rng.random_range(0..placed.len()));
                machines.give(machine, &needs[kind], 1);
                machines.release(machine, &parts);
                slow.counted(machine.index(), needs[kind][1], 1, true);
                continue;
            }
            let kind = rng.random_range(0..needs.len());
            let need = &needs[kind];
            slow.scores.clear();
            let expected = slow.find(&machines.index, machines.hardware().expect("devices"), need, Scope::default());
            let chosen = machines.find(need);
            assert_eq!(chosen.map(MachineId::index), expected, "{placement:?} {need:?}");
            let Some(machine) = chosen else {
                vain += 1;
                continue;
            };
            found += 1;
            machines.allocate(machine, need);
            slow.counted(machine.index(), need[1], 1, false);
            placed.push((machine, kind, machines.assign(machine, need)));
        }
        assert!(found > 500 && vain > 20, "{placement:?}: {found} found, {vain} without success");
    }
}
