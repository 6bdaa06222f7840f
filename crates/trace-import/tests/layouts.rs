//! Imports short logs in the layouts of formats without a sample folder. The rows are made for these tests.

use plimsoll_sim::workload::{Input, Source, Workload};
use plimsoll_trace_import::{ImportOptions, SHIPPED, Shipped, import, recognise};

fn input(name: &str, text: &str) -> Input {
    Input::Bytes(name.into(), text.as_bytes().to_vec().into())
}

fn imported(name: &str, files: &[(&str, &str)]) -> Workload {
    let inputs: Vec<Input> = files.iter().map(|(name, text)| input(name, text)).collect();
    let found = recognise(&inputs[0]).expect("readable").map(|shipped| shipped.name);
    assert_eq!(found, Some(name), "the first file is recognised");
    let mapping = Shipped::find(name).expect(name).mapping().expect("valid");
    import(&mapping, &inputs, ImportOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns job, user, submit and duration in seconds, tasks, and the demand of each row.
fn rows(workload: &Workload) -> Vec<String> {
    let (mut source, mut rows) = (workload.source(), Vec::new());
    while let Some(set) = source.next_set().expect("rows in memory") {
        let demand = workload.dims.iter().zip(set.demand.iter()).map(|(dim, base)| format!("{}={base}", dim.column()));
        rows.push(format!(
            "{} {} {} {} {} {}",
            source.job_names().text(&source.job_name()),
            source.users().name(set.user.0),
            set.submit.seconds(),
            set.duration.seconds(),
            set.tasks,
            demand.collect::<Vec<_>>().join(" ")
        ));
    }
    rows
}

#[test]
fn every_shipped_mapping_is_valid_and_has_a_source() {
    for shipped in SHIPPED {
        assert_eq!(shipped.about(), shipped.mapping().expect(shipped.name).about, "the line of the description");
        let mapping = shipped.mapping().unwrap_or_else(|error| panic!("{error}"));
        assert!(
            !mapping.about.is_empty() && !mapping.source.is_empty() && mapping.recognition.is_some(),
            "{}",
            shipped.name
        );
    }
}

#[test]
fn helios_divides_demands_by_nodes() {
    let text = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
                7,u1,vcA,16,64,2,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,50\n\
                8,u2,vcA,0,4,1,CANCELLED,2020-04-01 00:00:00,None,2020-04-01 00:00:30,0,30\n\
                9,u2,vcB,1,4,1,FAILED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:00:15,10,5\n";
    let workload = imported("helios", &[("cluster_log.csv", text)]);
    assert_eq!(rows(&workload), ["9 u2 0 10 1 cpu=4000 gpu=1000", "7 u1 10 3600 2 cpu=32000 gpu=8000"]);
    assert!(workload.sets[1].gang && !workload.sets[0].gang);
}

#[test]
fn acme_has_offsets() {
    let text = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n\
                a,u,1,8,120,Pretrain,COMPLETED,2023-03-01 11:00:58+08:00,2023-03-01 11:01:08+08:00,2023-03-01 11:01:16+08:00,18,10,144\n\
                b,u,1,1,12,Eval,FAILED,2023-03-01 03:01:00+00:00,2023-03-01 03:01:00+00:00,2023-03-01 03:01:02+00:00,2,0,2\n";
    let workload = imported("acme", &[("trace_seren.csv", text)]);
    assert_eq!(rows(&workload), ["a u 0 8 1 cpu=120000 gpu=8000", "b u 2 2 1 cpu=12000 gpu=1000"]);
}

#[test]
fn dlrm_drops_instances_at_the_edges_of_the_window() {
    let head = "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,\
                memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n";
    let text = format!(
        "{head}i0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,\ni1,CN,app_87,64,64,0,0,100,100,320.0,320.0,255.0,300.0,2,10.0,12.0,42.0\n"
    );
    let workload = imported("dlrm-2025", &[("trace.csv", &text)]);
    assert_eq!(rows(&workload), ["i1 app_87 0 30 1 cpu=64000 memory_mib=327680 gpu=0 disk_mib=261120 network=100000"]);
    assert_eq!(workload.quality.dropped["created before the window"], 1);
}

#[test]
fn google_2019_folds_json_lines_of_several_shards() {
    let event = |time: u64, kind: u32, index: u32| {
        format!(
            "{{\"time\":\"{time}\",\"type\":\"{kind}\",\"collection_id\":\"377\",\"instance_index\":\"{index}\",\"priority\":\"200\",\
             \"collection_type\":\"0\",\"resource_request\":{{\"cpus\":0.25,\"memory\":0.125}}}}\n"
        )
    };
    let first = [event(700_000_000, 0, 0), event(900_000_000, 6, 0), event(700_000_000, 0, 1)].concat();
    let second = [event(710_000_000, 3, 0), event(720_000_000, 3, 1), event(800_000_000, 7, 1)].concat();
    let users = "{\"collection_id\":\"377\",\"user\":\"u=\"}\n";
    let files = [
        ("instance_events-0.json", first.as_str()),
        ("instance_events-1.json", &second),
        ("collection_events-0.json", users),
    ];
    let workload = imported("google-2019", &files);
    assert_eq!(rows(&workload), ["377 u= 0 190 1 cpu_norm=250000 memory_norm=125000"]);
    assert_eq!(workload.quality.dropped["killed"], 1);
    assert_eq!(rows(&imported("google-2019", &files[..2])), ["377 377 0 190 1 cpu_norm=250000 memory_norm=125000"]);
}

#[test]
fn slurm_requests_memory_per_node_or_per_core() {
    let head = "JobIDRaw|JobID|User|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqMem|AllocTRES\n";
    let row = |job: u32, memory: &str, tres: &str| {
        format!(
            "{job}|{job}|u|COMPLETED|2020-01-01T00:00:00|2020-01-01T00:00:00|2020-01-01T00:01:00|60|9|2|8|{memory}|{tres}\n"
        )
    };
    let text = [
        head.to_owned(),
        row(1, "4Gn", "cpu=8,node=2"),
        row(2, "4Gc", "cpu=8,node=2"),
        row(3, "4G", "cpu=8,node=2"),
        row(4, "4Gn", "cpu=8,mem=6G,node=2"),
    ];
    let workload = imported("slurm", &[("sacct.txt", &text.concat())]);
    let memory: Vec<u64> = workload.sets.iter().map(|set| set.demand[1] / 1024).collect();
    assert_eq!(memory, [4, 16, 2, 3], "per task, and each job has two");
}

#[test]
fn constraints_of_google_2011_are_counted() {
    let event = |time: u32, job: u32, kind: u32, different: u32| {
        format!("{time}00000000,,{job},0,7,{kind},u,3,9,0.25,0.25,0,{different}\n")
    };
    let job = |job: u32, different: u32| [0, 1, 4].map(|kind| event(6 + kind, job, kind, different)).concat();
    let workload = imported("google-2011", &[("task_events.csv", &[job(1, 0), job(2, 1)].concat())]);
    assert_eq!(workload.sets.len(), 2);
    let warning =
        "tasks that must run on another machine than the other tasks of their job, which the trace does not express";
    assert_eq!(workload.quality.warnings, [format!("{warning}: 1 rows")]);
}

#[test]
fn a_wall_time_of_minus_one_is_no_limit_in_batsim() {
    let text = "{\"nb_res\": 4, \"jobs\": [{\"id\": 1, \"subtime\": 0, \"res\": 1, \"profile\": \"a\", \"walltime\": -1},\
                {\"id\": 2, \"subtime\": 0, \"res\": 1, \"profile\": \"a\", \"walltime\": 3},\
                {\"id\": 3, \"subtime\": 0, \"res\": 1, \"profile\": \"a\", \"walltime\": -7}],\
                \"profiles\": {\"a\": {\"type\": \"delay\", \"delay\": 5}}}";
    let workload = imported("batsim", &[("w.json", text)]);
    assert_eq!(rows(&workload), ["1 1 0 5 1 cpu=1000", "2 2 0 3 1 cpu=1000"]);
    assert_eq!(workload.sets[0].estimate, None);
    assert_eq!(workload.quality.dropped["unusable duration"], 1);
    assert_eq!(workload.quality.warnings, ["jobs that are killed at their wall time: 1 rows"]);
}

#[test]
fn azure_traces_have_days_and_buckets() {
    let vm = "vmId,tenantId,vmTypeId,priority,starttime,endtime\n1,t1,5,0,0.5,1.5\n2,t2,5,1,-3,2\n3,t2,5,1,1,\n";
    let kinds = "id,vmTypeId,machineId,core,memory,hdd,ssd,nic\n1,5,3,0.5,0.5,0,0,0.1\n2,5,0,0.25,0.125,,0.1,0.1\n";
    let workload = imported("azure-packing", &[("vm.csv", vm), ("vmType.csv", kinds)]);
    let want = [
        "1 t1 0 86400 1 cpu_norm=250000 memory_norm=125000 disk_norm=100000",
        "3 t2 43200 7689600 1 cpu_norm=250000 memory_norm=125000 disk_norm=100000",
    ];
    assert_eq!(rows(&workload), want);
    let table = "v1,s1,d1,0,300,99.5,1.5,80,Delay-insensitive,2,4\nv2,s1,d1,600,2591700,1,1,1,Interactive,>24,>64\n";
    let workload = imported("azure-vm", &[("vmtable.csv", table)]);
    assert_eq!(
        rows(&workload),
        ["v1 s1 0 300 1 cpu=2000 memory_mib=4096", "v2 s1 600 2591100 1 cpu=24000 memory_mib=65536"]
    );
}

#[test]
fn the_grid_workload_format_has_comments_and_blanks() {
    let text = "# Grid Workload Format\n# JobID SubmitTime WaitTime RunTime NProcs ... ReqNProcs ... JobStructure\n\
                0 1136070024 203761 138467 1 138371 98652 1 -1 -1 1 U1 G1 X1 Q1 -1 S1 S1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n\
                1 1136070690 0 -1 1 -1 -1 4 -1 -1 0 U2 G1 X1 Q1 -1 S1 S1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n\
                2 1136070700   5\t60 4 -1 -1 -1 90 -1 1 U2 G1 X1 Q1 -1 S1 S1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n";
    let workload = imported("gwf", &[("log.gwf", text)]);
    assert_eq!(rows(&workload), ["0 U1 0 138467 1 cpu=1000", "2 U2 676 60 1 cpu=4000"]);
}

#[test]
fn elasticflow_numbers_its_jobs() {
    let text = "job_id,user,num_gpu,batch_size,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort\n\
                x,u,8,64,100,5000,bert,360,0,500,1,0\n";
    assert_eq!(rows(&imported("elasticflow", &[("trace.csv", text)])), ["1 u 0 360 1 gpu=8000"]);
}
