//! A set of worlds with the styles of attacks, and the cases that follow from them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use karat_core::dataset::{Dataset, DatasetFiles};
use karat_core::error::EvalError;
use karat_core::report::DatasetRef;
use karat_io::input::{InputError, Limits};
use karat_recordings::Run;
use serde::{Deserialize, Serialize};

use crate::attack::{Attack, Style, Surface, surface_at};
use crate::world::{Task, World};

/// The file of the styles; every other JSON file of a set is a world.
const STYLES: &str = "styles.json";

/// Worlds and styles.
pub struct WorldSet {
    /// The worlds.
    pub worlds: Vec<Arc<World>>,
    /// The styles.
    pub styles: Vec<Style>,
    /// The set as reports name it.
    pub reference: DatasetRef,
}

/// The cases that are of interest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// Only these worlds; all if empty.
    pub worlds: Vec<String>,
    /// Only these styles; all if empty.
    pub styles: Vec<String>,
    /// Only these surfaces; all if empty.
    pub surfaces: Vec<Surface>,
    /// The attacks on each task and goal, 1 if not given; each has another style and surface.
    pub attacks: Option<usize>,
}

/// A task to be done, with an attack or without.
#[derive(Clone)]
pub struct Case {
    /// The world.
    pub world: Arc<World>,
    /// The task.
    pub task: Arc<Task>,
    /// The attack.
    pub attack: Option<Arc<Attack>>,
}

impl Case {
    /// The run of it by `pipeline`, before anything is known about it.
    pub(crate) fn run(&self, pipeline: &str) -> Run {
        let attack = self.attack.as_ref();
        Run {
            pipeline: pipeline.to_owned(),
            suite: self.world.name.clone(),
            task: self.task.id.clone(),
            goal: attack.map(|attack| attack.goal.id.clone()),
            attack: attack.map(|attack| attack.style.clone()),
            surface: attack.map(|attack| attack.surface.name().to_owned()),
            at_call: attack.and_then(|attack| attack.changes_at()),
            split: Some(self.task.split.clone()),
            ..Run::default()
        }
    }

    /// The id of its item in a report: world, task, goal and style.
    pub(crate) fn item_id(&self) -> String {
        let start = format!("{}/{}", self.world.name, self.task.id);
        match &self.attack {
            Some(attack) => format!("{start}/{}/{}", attack.goal.id, attack.style),
            None => start,
        }
    }

    /// The id: world, task, goal, style and surface.
    pub fn id(&self) -> String {
        let start = format!("{}/{}", self.world.name, self.task.id);
        match &self.attack {
            Some(attack) => {
                format!("{start}/{}/{}/{}", attack.goal.id, attack.style, attack.place())
            }
            None => start,
        }
    }
}

impl WorldSet {
    /// Reads a frozen set, and plays every task and goal.
    ///
    /// # Errors
    /// If the set is damaged, or a world contradicts itself.
    pub fn open(files: DatasetFiles) -> Result<WorldSet, EvalError> {
        let set = Dataset::of(files)?;
        let limits = Limits::default();
        let mut read = WorldSet {
            worlds: Vec::new(),
            styles: Vec::new(),
            reference: DatasetRef {
                id: set.id().to_owned(),
                version: set.version().to_string(),
                digest: set.digest().to_string(),
            },
        };
        for path in set.manifest().files.keys() {
            let label = set.files().label(path.as_str());
            if path.as_str() == STYLES {
                read.styles = set.load(path, &limits)?;
            } else if path.as_str().ends_with(".json") {
                let world: World = set.load(path, &limits)?;
                let wrong = |why| InputError::invalid(&label, format!("world {}", world.name), why);
                world.validate().map_err(wrong)?;
                read.worlds.push(Arc::new(world));
            }
        }
        read.check(&set.files().label(""))?;
        Ok(read)
    }

    fn check(&self, place: &Path) -> Result<(), InputError> {
        let wrong = |why: String| Err(InputError::invalid(place, "worlds", why));
        if self.worlds.is_empty() || self.styles.is_empty() {
            return wrong(format!("a set needs worlds, and styles in {STYLES}"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.worlds.iter().find(|world| !names.insert(&world.name)) {
            return wrong(format!("two worlds are called {:?}", twice.name));
        }
        match self.styles.iter().find(|style| !style.text.contains("{order}")) {
            Some(style) => wrong(format!("style {:?} has no {{order}} in its text", style.name)),
            None => Ok(()),
        }
    }

    /// The cases: every task without an attack, and every task with every goal of its world. Styles and
    /// surfaces take turns, so that each meets many tasks and goals.
    ///
    /// # Errors
    /// If nothing is left, or a name is not known.
    pub fn cases(&self, selection: &Selection) -> Result<Vec<Case>, EvalError> {
        let known: Vec<&str> = self.worlds.iter().map(|world| world.name.as_str()).collect();
        check_names("world", &selection.worlds, &known)?;
        let known: Vec<&str> = self.styles.iter().map(|style| style.name.as_str()).collect();
        check_names("style", &selection.styles, &known)?;
        let among = |list: &[String], name: &String| list.is_empty() || list.contains(name);
        let styles: Vec<&Style> =
            self.styles.iter().filter(|style| among(&selection.styles, &style.name)).collect();
        let surfaces = match selection.surfaces.as_slice() {
            [] => Surface::ALL.to_vec(),
            some => some.to_vec(),
        };
        let attacks = selection.attacks.unwrap_or(1);
        if !(1..=styles.len()).contains(&attacks) {
            return Err(EvalError::config(format!(
                "`attacks` must be between 1 and the number of styles, which is {}",
                styles.len()
            )));
        }
        let mut cases = Vec::new();
        for world in self.worlds.iter().filter(|world| among(&selection.worlds, &world.name)) {
            let (mut turn, mut pulls) = (0, 0);
            let surfaces = match world.is_served_elsewhere() {
                false => &*surfaces,
                true if surfaces.contains(&Surface::Result) => &[Surface::Result],
                true => {
                    return Err(EvalError::config(format!(
                        "world {}: a command serves it, so its only surface is result",
                        world.name
                    )));
                }
            };
            for task in &world.tasks {
                let task = Arc::new(task.clone());
                cases.push(Case {
                    world: Arc::clone(world),
                    task: Arc::clone(&task),
                    attack: None,
                });
                for goal in &world.goals {
                    for number in 0..attacks {
                        let style = styles[(turn + number) % styles.len()];
                        let surface =
                            surfaces[(turn + turn / styles.len() + 3 * number) % surfaces.len()];
                        let attack = Attack::new(goal, style, surface).at_call(task.at_call(pulls));
                        pulls += usize::from(surface == Surface::RugPull);
                        let attack = Some(Arc::new(attack));
                        cases.push(Case {
                            world: Arc::clone(world),
                            task: Arc::clone(&task),
                            attack,
                        });
                    }
                    turn += 1;
                }
            }
        }
        Ok(cases)
    }

    /// The case with this id.
    ///
    /// # Errors
    /// If there is none.
    pub fn case(&self, id: &str) -> Result<Case, EvalError> {
        let none = || {
            EvalError::config(format!(
                "no case {id:?}; expected WORLD/TASK[/GOAL/STYLE/SURFACE], or \
                 rugpull@2 as the surface for a definition that changes at the second call"
            ))
        };
        let mut parts = id.split('/');
        let mut next = || parts.next();
        let world = next().and_then(|name| self.worlds.iter().find(|world| world.name == name));
        let world = world.ok_or_else(none)?;
        let task = next()
            .and_then(|name| world.tasks.iter().find(|task| task.id == name))
            .ok_or_else(none)?;
        let attack = match next() {
            None => None,
            Some(goal) => {
                let goal = world.goals.iter().find(|known| known.id == goal).ok_or_else(none)?;
                let style =
                    next().and_then(|name| self.styles.iter().find(|style| style.name == name));
                let (surface, number) = next().and_then(surface_at).ok_or_else(none)?;
                if number.is_some_and(|number| number > task.calls.len()) {
                    return Err(EvalError::config(format!(
                        "case {id:?}: task {} has {} calls, so no definition changes at a later one",
                        task.id,
                        task.calls.len()
                    )));
                }
                let attack = Attack::new(goal, style.ok_or_else(none)?, surface);
                Some(Arc::new(attack.at_call(number.or(task.changes_at).unwrap_or(1))))
            }
        };
        Ok(Case { world: Arc::clone(world), task: Arc::new(task.clone()), attack })
    }
}

fn check_names(what: &str, asked: &[String], known: &[&str]) -> Result<(), EvalError> {
    match asked.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(EvalError::config(format!(
            "no {what} {name:?}; expected one of {}",
            known.join(", ")
        ))),
        None => Ok(()),
    }
}
