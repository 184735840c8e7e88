"""Plays the recipes of docs/long-runs.md: `recipes.py KARAT DOCUMENT FOLDER SCHEMA`.

What a service does between the commands (checkout, cache, artifacts, volumes) is done here by copying
folders; the commands are those of the document. Fails unless both merged reports are, byte for byte, that of
a run that was not divided.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import yaml

KARAT, DOCUMENT, FOLDER, SCHEMA = (pathlib.Path(word) for word in sys.argv[1:5])
ITEMS, KILLED = 800, 3
# All runs have the same time in their reports.
BASE = {**os.environ, "SOURCE_DATE_EPOCH": "1794711845"}

# A slow search that writes down what it was asked.
SLOW = """
import json, os, sys, time
asked = open(os.environ["ASKED"], "a")
for line in sys.stdin:
    question = json.loads(line)
    asked.write(question["id"] + "\\n")
    asked.flush()
    time.sleep(0.01)
    number = int(question["id"][1:])
    ranked = [{"tool_id": f"s:t{(number + step) % 7}"} for step in range(number % 5)]
    print(json.dumps({"id": question["id"], "ranked": ranked}), flush=True)
"""


def make_project(folder):
    folder.mkdir(parents=True)
    tools = [{"server": "s", "tool": f"t{n}", "description": f"Tool number {n}, which turns handle {n}."} for n in range(7)]
    (folder / "tools.json").write_text(json.dumps({"tools": tools}))
    with open(folder / "golden.jsonl", "w") as out:
        for n in range(ITEMS):
            label = {"tool_id": f"s:t{n * 3 % 7}", "relevance": 2}
            out.write(json.dumps({"id": f"q{n:04}", "query": f"turn handle {n * 3 % 7}", "labels": [label]}) + "\n")
    (folder / "slow.py").write_text(SLOW)
    (folder / "karat.toml").write_text(
        '[[retrieval]]\nname = "slow"\ncorpus = "tools.json"\ngolden = "golden.jsonl"\n'
        'system = { command = ["python3", "slow.py"] }\nlimit = 5\n\n'
        '[[retrieval]]\nname = "bm25"\ncorpus = "tools.json"\ngolden = "golden.jsonl"\nsystem = { builtin = "bm25" }\n'
    )


def shell(command, folder, expected=0, kill_when=None, **variables):
    """Runs a command of the document; kills it with all that it started when a journal has some lines."""
    run = subprocess.Popen(command, cwd=folder, env={**BASE, **variables}, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if kill_when is not None:
        deadline = time.monotonic() + 60
        while sum(len(path.read_bytes().splitlines()) for path in kill_when.glob("*slow*.jsonl")) < 20:
            if run.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"there was no time to kill {command}: {run.stdout.read()}")
            time.sleep(0.005)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return
    said = run.communicate(timeout=300)[0]
    if run.returncode != expected:
        sys.exit(f"{command} in {folder} ended with {run.returncode}:\n{said}")


def asked(path):
    return path.read_text().split() if path.exists() else []


def compare(name, found, whole, log):
    for file in ("report.json", "report.html"):
        if (found / file).read_bytes() != (whole / file).read_bytes():
            sys.exit(f"{name}: {file} differs from that of a run that was not divided")
    questions = asked(log)
    again = len(questions) - len(set(questions))
    # What was under way when the part was killed is asked again, and nothing else.
    if len(set(questions)) != ITEMS or again > 16:
        sys.exit(f"{name}: {len(set(questions))} of {ITEMS} questions were asked, {again} of them twice")
    print(f"{name}: 8 parts, part {KILLED} killed and resumed, merged: no difference ({again} questions asked twice)")


def github(workflow, project, work, whole):
    jobs, log = workflow["jobs"], work / "asked.log"
    steps = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    numbers = jobs["part"]["strategy"]["matrix"]["part"]
    variables = {"PARTS": str(workflow["env"]["PARTS"]), "ASKED": str(log)}
    assert len(numbers) == workflow["env"]["PARTS"] == 8, numbers

    def checkout(name):
        folder = work / name
        shutil.copytree(project, folder)
        shutil.copy2(KARAT, folder / "karat")  # the artifact of the job that builds
        return folder

    for number in numbers:
        [measure] = steps["part"]
        command = ["bash", "-e", "-o", "pipefail", "-c", measure]
        folder = checkout(f"job-{number}")
        if number == KILLED:
            shell(command, folder, kill_when=folder / "part" / "journal", PART=str(number), **variables)
            cached, folder = folder / "part", checkout(f"job-{number}-again")
            shutil.copytree(cached, folder / "part")
        shell(command, folder, PART=str(number), **variables)
        shutil.copytree(folder / "part", work / "artifacts" / f"part-{number}")
    folder = checkout("merge")
    shutil.copytree(work / "artifacts", folder / "parts")
    [merge] = steps["merge"]
    shell(["bash", "-e", "-o", "pipefail", "-c", merge], folder, **variables)
    compare("GitHub matrix", folder / "karat-report", whole, log)


def kubernetes(parts, merge, project, work, whole):
    log, volume, tools = work / "asked.log", work / "parts", work / "bin"
    volume.mkdir()
    tools.mkdir()
    shutil.copy2(KARAT, tools / "karat")
    path = f"{tools}:{os.environ['PATH']}"

    def pod(job, **more):
        container = job["spec"]["template"]["spec"]["containers"][0]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {"project": container["workingDir"], "parts": "/parts"}, mounts
        words = [*container["command"], *container["args"]]
        # The volume is elsewhere on this machine.
        shell([re.sub(r"/parts\b", str(volume), word) for word in words], project, ASKED=str(log), PATH=path, **more)

    spec = parts["spec"]
    assert spec["completions"] == 8 and spec["completionMode"] == "Indexed"
    for index in range(spec["completions"]):
        if index + 1 == KILLED:
            pod(parts, kill_when=volume / str(index) / "journal", JOB_COMPLETION_INDEX=str(index))
        pod(parts, JOB_COMPLETION_INDEX=str(index))
    pod(merge)
    compare("Kubernetes Indexed Job", volume / "report", whole, log)


def strict(schema):
    """The schema with every field that it does not name refused; only the types that are named are open."""
    schema = copy.deepcopy(schema)
    for one in schema.values():
        if "properties" in one:
            one.setdefault("additionalProperties", False)
    return schema


def validate(manifests, work):
    schemas = strict(json.loads((FOLDER / SCHEMA).read_text())["components"]["schemas"])
    schema = {"$ref": "#/components/schemas/io.k8s.api.batch.v1.Job", "components": {"schemas": schemas}}
    (work / "job-batch-v1.json").write_text(json.dumps(schema))
    location = str(work / "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json")

    def valid(name, document):
        path = work / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        run = subprocess.run([FOLDER / "bin/kubeconform", "-schema-location", location, "-summary", path], capture_output=True, text=True)
        return run.returncode == 0 and "Valid: 1," in run.stdout, run.stdout + run.stderr

    for name, document in manifests.items():
        good, said = valid(name, document)
        if not good:
            sys.exit(f"{name} is not valid: {said}")
    # The check can fail.
    bad = copy.deepcopy(manifests["karat-parts"])
    bad["spec"]["completionsMode"] = bad["spec"].pop("completionMode")
    assert not valid("misspelled", bad)[0], "a misspelled field is not noticed"
    bad = copy.deepcopy(manifests["karat-parts"])
    bad["spec"]["completions"] = "eight"
    assert not valid("mistyped", bad)[0], "a wrong type is not noticed"
    print(f"kubeconform: {len(manifests)} manifests are valid; a misspelled field and a wrong type are not")


def main():
    work = FOLDER / "work"
    shutil.rmtree(work, ignore_errors=True)
    blocks = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT.read_text(), re.M | re.S)
    documents = [yaml.safe_load(block) for block in blocks]
    [workflow] = [one for one in documents if "jobs" in one]
    jobs = {one["metadata"]["name"]: one for one in documents if one.get("kind") == "Job"}
    project = work / "project"
    make_project(project)
    validate(jobs, work)
    shutil.copytree(project, work / "whole")
    shell([KARAT, "check"], work / "whole", ASKED=str(work / "whole.log"))
    whole = work / "whole" / "karat-report"
    (work / "github").mkdir()
    github(workflow, project, work / "github", whole)
    (work / "kubernetes").mkdir()
    kubernetes(jobs["karat-parts"], jobs["karat-merge"], project, work / "kubernetes", whole)


main()
