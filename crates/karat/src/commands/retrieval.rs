//! `karat retrieval score`, `export-trec` and `serve-fitness`: rankings that were made elsewhere,
//! files for others, and answers for optimisers.

use std::path::Path;

use karat_io::input::{Limits, Lines, write_atomic};
use karat_io::text::count;
use karat_metrics::ranking::Measure;
use karat_retrieval::dataset::{Dataset, Labels};
use karat_retrieval::fitness::{self, Fitness};
use karat_retrieval::rankings::{Absent, Rankings};
use karat_retrieval::{ScoreOptions, score_rankings};

use crate::bundled;
use crate::cli::{ExportTrecArgs, FitnessArgs, RankingsArgs, ToolsArgs};
use crate::commands::{check, parquet};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// The dataset that is measured on where none is named.
const BUNDLED: &str = "bundled:tools/v1";

/// Scores a file of rankings.
pub(crate) fn score(arguments: &RankingsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let score = &arguments.score;
    let (gate, folder) = check::scoring(score)?;
    let conclude = |report| check::conclude_scores(report, &gate, &score.outputs, terminal);
    if let Some(path) = &arguments.rankings
        && parquet::are_parquet(std::slice::from_ref(path))?
    {
        let ToolsArgs { dataset, corpus, golden } = &arguments.tools;
        parquet::refuse(
            &[
                ("--dataset", dataset.is_some()),
                ("--corpus", corpus.is_some()),
                ("--golden", golden.is_some()),
            ],
            "the Parquet file has a column of relevant ids",
        )?;
        return conclude(parquet::rankings(path, score.max_errors, folder)?);
    }
    let dataset = tools(&arguments.tools)?;
    let absent = if arguments.absent_is_empty { Absent::Empty } else { Absent::Unanswered };
    let (path, rankings) = match (&arguments.rankings, &arguments.run) {
        (Some(path), _) => (path, Rankings::load(path)?),
        (None, Some(path)) => (path, Rankings::load_trec(path, absent)?),
        (None, None) => return Err(Stop::bad_input("missing --rankings or --run")),
    };
    let options = ScoreOptions { max_errors: score.max_errors, ..ScoreOptions::default() };
    let report = score_rankings(dataset, &rankings, path, &options)?;
    parquet::write_all(folder, std::slice::from_ref(&report))?;
    conclude(report)
}

/// Writes the requested files.
pub(crate) fn export_trec(arguments: &ExportTrecArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let dataset = tools(&arguments.tools)?;
    // Everything is made before anything is written: rankings that do not fit leave no labels behind.
    let mut files: Vec<(&str, &Path, Vec<u8>)> = Vec::new();
    let mut notes = Vec::new();
    if let Some(path) = &arguments.qrels {
        let judged = dataset.queries.iter().map(|query| {
            let labels = query.labels.iter();
            let labels = labels.map(|label| (label.tool_id.as_str(), i64::from(label.relevance)));
            (query.id.as_str(), labels)
        });
        let mut bytes = Vec::new();
        trec::write_qrels(&mut bytes, judged).map_err(Stop::bad_input)?;
        files.push(("labels", path, bytes));
    }
    if let (Some(path), Some(source)) = (&arguments.run, &arguments.rankings) {
        let rankings = Rankings::load(source)?;
        // Only to see that the files belong together.
        rankings.outcomes(source, &dataset)?;
        let lists = rankings.first_run();
        let empty = lists.iter().filter(|(_, tools)| tools.is_empty()).count();
        let mut bytes = Vec::new();
        let rows = lists.iter().map(|(query, tools)| (*query, tools.as_slice()));
        trec::write_run(&mut bytes, rows, &tag(source)).map_err(Stop::bad_input)?;
        files.push(("rankings", path, bytes));
        if rankings.runs() > 1 {
            let runs = rankings.runs();
            notes.push(format!("karat: wrote the first of {runs} runs; a TREC file has one"));
        }
        if empty > 0 {
            notes.push(format!(
                "karat: {} with an empty result, which a TREC run cannot express; score it \
                 with `trec_eval -c`, or here with --absent-is-empty",
                count(empty, "query")
            ));
        }
    }
    for (what, path, bytes) in files {
        write_atomic(path, &bytes)?;
        terminal.say(&format!("{what}: {}", path.display()));
    }
    notes.iter().for_each(|note| terminal.say(note));
    Ok(Exit::Pass)
}

/// Answers fitness requests until the input ends.
pub(crate) fn serve_fitness(arguments: &FitnessArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let measure = arguments.metric.parse::<Measure>();
    let measure = measure.map_err(|error| Stop::bad_input(format!("--metric: {error}")))?;
    let limit = usize::from(arguments.results);
    if let Some(cut) = measure.cutoff()
        && cut.get() as usize > limit
    {
        return Err(Stop::bad_input(format!(
            "--metric {measure} requires {cut} results, but --results is {limit}: use --results {cut}"
        )));
    }
    let options = fitness::Options {
        engine: arguments.engine.clone(),
        weights: arguments.weights.clone(),
        measure,
        limit,
    };
    let mut fitness = Fitness::new(tools(&arguments.tools)?, options)?;
    terminal.print_json_text(&format!("{}\n", fitness.hello()))?;
    let input = std::io::stdin().lock();
    let mut lines = Lines::of("stdin", input, &Limits::streaming())?;
    while let Some((_, line)) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        let answer = fitness.answer(line);
        terminal.print_json_text(&format!("{answer}\n"))?;
    }
    Ok(Exit::Pass)
}

/// The last column of a run: who made it.
fn tag(source: &Path) -> String {
    let stem = source.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let plain: String = stem
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c })
        .collect();
    if plain.is_empty() { "karat".to_owned() } else { plain }
}

/// Reads the tools and queries that were named.
pub(crate) fn tools(arguments: &ToolsArgs) -> Result<Dataset, Stop> {
    if let (Some(corpus), Some(golden)) = (&arguments.corpus, &arguments.golden) {
        return Ok(Dataset::from_files(corpus, golden, Labels::MustExist)?);
    }
    let name = arguments.dataset.as_deref().unwrap_or(BUNDLED);
    Ok(Dataset::open(bundled::dataset(name)?)?)
}
