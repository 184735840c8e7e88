use crate::{Copy, metric, near, report, value};

/// Trajectories with the rewards of each task's trials.
fn trajectories(tasks: &[&[f64]]) -> String {
    let mut runs = Vec::new();
    for (task, rewards) in tasks.iter().enumerate() {
        for (trial, reward) in rewards.iter().enumerate() {
            runs.push(format!(
                "{{\"task_id\": {task}, \"reward\": {reward}, \"info\": {{\"task\": {{}}}}, \
                 \"traj\": [], \"trial\": {trial}}}"
            ));
        }
    }
    format!("[{}]", runs.join(",\n"))
}

#[test]
fn pass_hat_k_is_that_of_the_paper() {
    let text = trajectories(&[&[1.0, 1.0, 1.0, 1.0], &[1.0, 0.0, 0.9999999, 0.5], &[0.0; 4]]);
    let copy = Copy::new(&[("gpt-4o-airline.json", &text), ("tasks.json", "{\"x\": 1}")]);
    let reports = copy.reports("tau-bench");
    let found = report(&reports, "gpt-4o-airline");
    near(value(found, "tau.pass^1"), (1.0 + 0.5 + 0.0) / 3.0);
    near(value(found, "tau.pass^2"), (1.0 + 1.0 / 6.0 + 0.0) / 3.0);
    near(value(found, "tau.pass^3"), 1.0 / 3.0);
    near(value(found, "tau.pass^4"), 1.0 / 3.0);
    assert_eq!(found.runs, 4);
    near(metric(found, Some("domain=airline"), "tau.pass^2").value, (1.0 + 1.0 / 6.0) / 3.0);
}

#[test]
fn a_crashed_run_is_a_failure_for_the_benchmark_and_not_measured_for_karat() {
    let text = r#"[{"task_id": 0, "reward": 1.0, "trial": 0, "info": {}, "traj": []},
        {"task_id": 0, "reward": 0.0, "trial": 1, "info": {"error": "rate limit"}, "traj": []}]"#;
    let copy = Copy::new(&[("m-retail.json", text)]);
    let reports = copy.reports("tau-bench");
    near(value(&reports[0], "tau.pass^1"), 0.5);
    near(value(&reports[0], "task.success"), 1.0);
}

#[test]
fn tasks_with_fewer_trials_than_others_are_half_a_file() {
    let copy = Copy::new(&[("m-airline.json", &trajectories(&[&[1.0, 0.0], &[1.0]]))]);
    let message = copy.refused("tau-bench");
    assert!(message.contains("fewer than 2 runs of 1 of 2 tasks"), "{message}");
}

#[test]
fn results_of_the_second_version_are_read() {
    let text = r#"{"info": {}, "tasks": [], "simulations": [
        {"task_id": "7", "trial": 0, "reward_info": {"reward": 1.0}, "termination_reason": "user_stop"},
        {"task_id": "8", "trial": 0, "reward_info": null, "termination_reason": "too_many_errors"}]}"#;
    let copy = Copy::new(&[("m_telecom.json", text)]);
    let reports = copy.reports("tau-bench");
    near(value(&reports[0], "tau.pass^1"), 0.5);
    near(value(&reports[0], "run.failed"), 0.5);
}

#[test]
fn a_file_that_is_cut_off_or_of_another_kind_is_refused() {
    let copy = Copy::new(&[("m.json", "[{\"task_id\": 0, \"reward\": 1.0, \"tri")]);
    let message = copy.refused("tau-bench");
    assert!(message.contains("m.json:1") && message.contains("expected trajectories"), "{message}");
    let copy = Copy::new(&[("m.json", "{\"rows\": []}")]);
    assert!(copy.refused("tau-bench").contains("expected trajectories"));
    let copy = Copy::new(&[("m.json", "[{\"task\": 0, \"reward\": 1.0}]")]);
    assert!(copy.refused("tau-bench").contains("task_id"));
}

#[test]
fn versions_with_the_same_numbers_of_tasks_are_kept_apart() {
    let first = trajectories(&[&[1.0], &[0.0]]);
    let second = r#"{"info": {"environment_info": {"domain_name": "airline"}}, "simulations": [
        {"task_id": "0", "trial": 0, "reward_info": {"reward": 1.0}, "termination_reason": "user_stop"}]}"#;
    let copy = Copy::new(&[("a-airline.json", &first), ("b.json", second)]);
    let reports = copy.reports("tau-bench");
    assert_ne!(report(&reports, "a-airline").dataset.digest, report(&reports, "b").dataset.digest);
    assert_eq!(report(&reports, "b").items[0].tags["domain"], "airline");
}

#[test]
fn runs_without_a_number_count_in_the_order_of_the_file() {
    let text = r#"[{"task_id": 3, "reward": 1.0}, {"task_id": 3, "reward": null}]"#;
    let reports = Copy::new(&[("m.json", text)]).reports("tau-bench");
    assert_eq!(reports[0].runs, 2);
    near(value(&reports[0], "run.failed"), 0.5);
    assert!(Copy::new(&[("m.json", "[]")]).refused("tau-bench").contains("expected trajectories"));
}
