//! Charts as SVG: positions and labels for the templates of the report and of the dashboard.
//!
//! Positions are percentages of the drawing, so it stretches to any width while its text keeps its
//! size, without a script and without the style attributes that the policy of the pages forbids.
//! Curves are in a box of 1000 by 1000 that the template stretches.

mod bar;
mod plot;
mod scale;

pub(crate) use bar::Bar;
pub(crate) use plot::{Column, Plot};
pub use plot::{Dot, Line, Piece, Point};
pub use scale::{Scale, Tick};
pub(crate) use scale::{along, percent, short};
