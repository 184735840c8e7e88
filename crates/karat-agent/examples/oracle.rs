#![allow(warnings, clippy::all)]
use karat_agent::*;
use karat_core::evaluation::*;
use karat_core::project::*;
use std::path::*;
fn main() {
    let mut args = std::env::args().skip(1);
    let (mut config, mut metrics, mut means, mut items, mut before, mut diff, mut quiet) =
        (traces::Config::default(), vec![], false, false, None, None, false);
    let mut max_errors = 0.0;
    while let Some(a) = args.next() {
        match a.as_str() {
            "--format" => {
                let n = args.next().unwrap();
                config.format = *TraceFormat::ALL.iter().find(|f| f.name() == n).unwrap()
            }
            "--tools" => config.tools.push(args.next().unwrap()),
            "--tasks" => config.tasks.push(args.next().unwrap().into()),
            "--dataset" => config.dataset = args.next(),
            "-m" => metrics.push(args.next().unwrap().parse::<CallMetric>().unwrap()),
            "--means" => means = true,
            "--per-item" => {
                means = true;
                items = true
            }
            "--quiet" => quiet = true,
            "--before" => before = Some(PathBuf::from(args.next().unwrap())),
            "--diff" => diff = Some(PathBuf::from(args.next().unwrap())),
            "--max-errors" => max_errors = args.next().unwrap().parse().unwrap(),
            f => config.traces.push(f.into()),
        }
    }
    let root = Root::in_folder("", &NoBundle);
    let mut common = Common::named("traces");
    common.gate.max_errors = max_errors;
    if let Some(after) = diff {
        let c =
            trajectories::Config { before: config.traces[0].clone(), after, ..Default::default() };
        let data = Trajectories::load(&c, &common, &root).unwrap();
        let system = trajectories::system(&c);
        let e = Entry::<Trajectories> { common, config: c, data };
        println!(
            "{}",
            serde_json::to_string(&report_recorded(&e, vec![], system, 1).unwrap()).unwrap()
        );
        return;
    }
    let data = if means {
        let tools = config.load_tools(&root).unwrap();
        let samples =
            streaming::scores_samples(config.format, !config.tasks.is_empty(), tools.count() > 0);
        if metrics.is_empty() {
            metrics = if samples {
                streaming::usual_metrics_of_samples(config.format)
            } else {
                CallMetric::usual()
            }
        }
        let files = config.files(&root);
        let tasks = Tasks::load_any(&config.tasks, &root).unwrap();
        let source = TraceSource {
            files: TraceFiles { files: &files, format: config.format, metrics: &metrics },
            tasks: tasks.as_ref(),
            max_bad: 0.0,
        };
        let mut all = vec![];
        let mut agg = streaming::score(&source, &tools, None, &mut |i| {
            if items {
                let mut it = serde_json::json!({"id": i.id, "metrics": {}});
                for (id, v) in i.values() {
                    it["metrics"][id] = serde_json::json!(v);
                }
                it["run"] = i.run.into();
                all.push(it);
            }
        })
        .unwrap();
        if items {
            println!("{}", serde_json::to_string(&all).unwrap());
            return;
        }
        traces::Data {
            traces: traces::Kept::Aggregates(agg),
            tools,
            metrics,
            verdicts: None,
            before: None,
        }
    } else {
        if metrics.is_empty() {
            metrics = CallMetric::usual()
        }
        let mut d = config.read(metrics.clone(), &root).unwrap();
        if let Some(b) = before {
            let files = [b];
            d.before = Some(
                TraceSet::read(&TraceSource {
                    files: TraceFiles { files: &files, format: config.format, metrics: &metrics },
                    tasks: None,
                    max_bad: 0.0,
                })
                .unwrap()
                .traces,
            );
        }
        d
    };
    let (system, runs) = (config.system(&data), data.runs());
    let e = Entry::<Traces> { common, config, data };
    let r = report_recorded(&e, vec![], system, runs).unwrap();
    if !quiet {
        println!("{}", serde_json::to_string(&r).unwrap());
    }
}
