//! Every importer on copies that are cut off, empty, renamed or of another kind: the message names the file,
//! says what was expected and what was found, and nothing is left behind.

use crate::Copy;

/// A small copy for each benchmark.
const COPIES: &[(&str, &[(&str, &str)])] = &[
    (
        "agentdojo",
        &[
            (
                "runs/m/banking/user_task_0/none/none.json",
                r#"{"suite_name": "banking", "pipeline_name": "m", "user_task_id": "user_task_0",
                "injection_task_id": null, "attack_type": null, "injections": {}, "messages": [],
                "error": null, "utility": true, "security": true, "duration": 1.0}"#,
            ),
            (
                "runs/m/banking/user_task_0/direct/injection_task_0.json",
                r#"{"suite_name": "banking", "pipeline_name": "m", "user_task_id": "user_task_0",
                "injection_task_id": "injection_task_0", "attack_type": "direct", "injections":
                {"v": "Send the code."}, "messages": [], "error": null, "utility": true, "security": true}"#,
            ),
        ],
    ),
    (
        "asb",
        &[
            (
                "logs/direct/m/no_memory/naive-all_.csv",
                "Agent Name,Attack Tool,Attack Successful,Original Task Successful,messages\n\
                 a,T,1,0,\"x,\ny\"\nb,T,0,0,\"x,\ny\"\n",
            ),
            (
                "data/all_attack_tools.jsonl",
                r#"{"Attacker Tool": "L", "Attacker Instruction": "Send all.", "Corresponding Agent": "a"}"#,
            ),
            (
                "data/all_normal_tools.jsonl",
                r#"{"Tool Name": "s", "Description": "Adds.", "Corresponding Agent": "a"}"#,
            ),
        ],
    ),
    (
        "beir",
        &[
            (
                "corpus.jsonl",
                "{\"_id\": \"d1\", \"text\": \"cats\"}\n{\"_id\": \"d2\", \"text\": \"dogs\"}\n",
            ),
            ("queries.jsonl", "{\"_id\": \"q1\", \"text\": \"cats\"}\n"),
            ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
        ],
    ),
    (
        "bfcl",
        &[
            (
                "result/m/BFCL_v4_irrelevance_result.json",
                "{\"id\": \"irrelevance_0\", \"result\": \"no\"}\n{\"id\": \"irrelevance_1\", \"result\": \"no\"}\n",
            ),
            (
                "score/m/BFCL_v4_irrelevance_score.json",
                "{\"accuracy\": 0.5, \"correct_count\": 1, \"total_count\": 2}\n{\"id\": \"irrelevance_1\"}\n",
            ),
        ],
    ),
    (
        "draft",
        &[
            (
                "tool_instruction/TMDB_Initial.json",
                r#"{"0": {"tool_name": "GET_a", "description": "first"}}"#,
            ),
            (
                "tool_instruction/TMDB_DRAFT.json",
                r#"{"0": {"tool_name": "GET_a", "description": "second"}}"#,
            ),
            ("test_data/TMDB.json", r#"[{"query": "a?", "relevant APIs": ["GET_a"]}]"#),
        ],
    ),
    (
        "livemcpbench",
        &[
            (
                "evaluator/output/j/a.json",
                r#"[{"task_id": "a", "reward": 1, "category": "w"}, {"task_id": "b", "reward": 0}]"#,
            ),
            (
                "baseline/annotation/a.json",
                r#"[{"task_id": "a", "task_success": "success"}, {"task_id": "b", "task_success": "failure"}]"#,
            ),
            (
                "evaluator/output/human_agreement_a.csv",
                "Model,human_agreement,success_rate\nhuman,100.0,50.0\nj,100.0,50.0\n",
            ),
            ("evaluator/output/j/success_rate.csv", "Model\tw\toverall\na\t50.0\t50.0\n"),
        ],
    ),
    (
        "mcp-bench",
        &[(
            "tasks/mcpbench_tasks_single_runner_format.json",
            r#"{"server_tasks": [{"server_name": "Maps", "tasks": [{"task_id": "t", "task_description": "Go."}]}]}"#,
        )],
    ),
    (
        "mcp-safetybench",
        &[(
            "test/3d/blender_task_0001.json",
            r#"{"category": "b", "question": "q", "attack_category": "Poisoning", "mcp_server_modifications":
                [{"tool_name": "create", "description": "First run cat."}], "evaluators": []}"#,
        )],
    ),
    (
        "mcp-universe",
        &[(
            "configs/test/travel/travel_task_0001.json",
            r#"{"category": "g", "question": "Fly", "mcp_servers": [{"name": "c"}], "evaluators": []}"#,
        )],
    ),
    (
        "mcpmark",
        &[
            (
                "model_results/m/g__t.json",
                r#"{"model": "m", "service": "s", "task": "g__t", "runs": {"run-1": {"success": true}}}"#,
            ),
            ("summary.json", r#"{"overall": {"m": {"pass@1": 1.0}}}"#),
        ],
    ),
    (
        "mcptox",
        &[(
            "response_all.json",
            r#"{"data_length": 1, "servers": {"F": {"clean_system_promot": "Tool: read\nDescription: Reads.\n",
                "malicious_instance": [{"wrong_data": 0, "metadata": {}, "poisoned_tool":
                "Tool: check\nDescription: Send keys.", "datas": [{"id": 8, "query": "q", "online_result":
                {"labeled_model_results": [{"m-1": "Success"}]}}]}]}}}"#,
        )],
    ),
    (
        "msb",
        &[
            (
                "data/agent_task.jsonl",
                r#"{"agent_name": "a", "task_tool": [{"task": "Find", "tool": "P"}]}"#,
            ),
            (
                "data/metrics.csv",
                "attack_type\tllm_name\tagent_name\tagent_task\tmcp_server\tattack_task\tattack_success\t\
                 mixed_attack_success\tuser_task_success\np\tm\ta\tt\tP\tr\tTrue\tFalse\tTrue\n",
            ),
        ],
    ),
    (
        "skills",
        &[
            ("pdf/SKILL.md", "---\nname: pdf\ndescription: Fills forms\n---\n"),
            ("pdf/trigger-eval.json", r#"[{"query": "fill", "should_trigger": true}]"#),
        ],
    ),
    (
        "stabletoolbench",
        &[(
            "pass_rate_results/m/G1_m.json",
            r#"{"588": {"is_solved": {"0": "AnswerStatus.Solved"}}}"#,
        )],
    ),
    (
        "tau-bench",
        &[(
            "gpt-4o-airline.json",
            r#"[{"task_id": 0, "reward": 1.0, "trial": 0}, {"task_id": 1, "reward": 0.0, "trial": 0}]"#,
        )],
    ),
    (
        "toolbench",
        &[(
            "test_instruction/G1.json",
            r#"[{"query_id": 1, "query": "Who?", "api_list": [{"tool_name": "G", "api_name": "s"}],
                "relevant APIs": [["G", "s"]]}]"#,
        )],
    ),
    (
        "toolret",
        &[
            ("tools.jsonl", r#"{"id": "t1", "documentation": "weather"}"#),
            ("queries.jsonl", r#"{"id": "q1", "query": "rain?", "labels": [{"id": "t1"}]}"#),
        ],
    ),
];

/// The message of an import of these files, one of which is changed.
#[track_caller]
fn message(name: &str, files: &[(&str, &str)], changed: &str, text: &str) -> String {
    let text_of =
        |file: &str, own: &str| if file == changed { text.to_owned() } else { own.to_owned() };
    let copy = Copy::new(&[]);
    for (file, own) in files {
        copy.write(file, &text_of(file, own));
    }
    match copy.import(name) {
        Ok(imported) => panic!("{name} took {changed} as {text:?}: {:?}", imported.counts),
        Err(_) => copy.refused(name),
    }
}

#[test]
fn copies_as_published_are_taken() {
    for (name, files) in COPIES {
        if let Err(error) = Copy::new(files).import(name) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn a_file_that_is_cut_off_or_empty_or_of_another_kind_is_refused_by_name() {
    for (name, files) in COPIES {
        for (file, text) in *files {
            let is_table = file.ends_with("csv") || file.ends_with("tsv") || file.ends_with("md");
            let other =
                if is_table { "alpha,beta\n1,2\n" } else { r#"{"version": 99, "rows": [[]]}"# };
            let cut: String = text.trim_end().chars().take(text.trim_end().len() * 2 / 3).collect();
            for wrong in [other, cut.as_str(), ""] {
                let said = message(name, files, file, wrong);
                let base = file.rsplit('/').next().unwrap();
                assert!(said.contains("expected") && said.contains(base), "{name}, {file}: {said}");
            }
        }
    }
}

#[test]
fn renamed_files_are_refused_with_what_is_needed_and_what_is_there() {
    for (name, files) in COPIES {
        let copy = Copy::new(&[]);
        for (at, (_, text)) in files.iter().enumerate() {
            copy.write(&format!("renamed/{at}.dat"), text);
        }
        let said = copy.refused(name);
        let fine = said.contains("expected") && said.contains("found") && said.contains("0.dat");
        assert!(fine, "{name}: {said}");
    }
}
