//! The colours of the page: legible in both themes, and one dark theme, not two.

use crate::sample;

use std::collections::BTreeMap;

use karat_report::html;

type Palette = BTreeMap<String, [u8; 3]>;

/// The blocks of the style that set colours, in order: light, dark by choice, dark by preference.
fn palettes() -> Vec<Palette> {
    let page = html::page(&sample::small()).unwrap();
    let blocks = page.split('{').filter(|block| block.contains("--paper:"));
    blocks
        .map(|block| {
            let block = block.split('}').next().unwrap();
            let colour = |line: &str| {
                let (name, value) = line.trim().strip_prefix("--")?.split_once(": #")?;
                let number = u32::from_str_radix(value, 16).ok()?;
                let [_, red, green, blue] = number.to_be_bytes();
                Some((name.to_owned(), [red, green, blue]))
            };
            block.split(';').filter_map(colour).collect()
        })
        .collect()
}

/// The contrast of two colours as WCAG 2 defines it.
fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let luminance = |colour: [u8; 3]| {
        let linear = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn the_dark_theme_is_the_same_however_it_was_chosen() {
    let palettes = palettes();
    assert_eq!(palettes.len(), 3);
    assert_eq!(palettes[1], palettes[2]);
    assert!(palettes[0].keys().eq(palettes[1].keys()), "a colour is set in one theme only");
}

#[test]
fn text_and_edges_keep_the_contrast_of_wcag_aa() {
    let grounds = ["paper", "card", "sunken", "mark"];
    let verdicts = ["pass", "fail", "inconclusive", "lost", "open"];
    for palette in palettes() {
        let holds = |front: &str, ground: &str, least: f64| {
            let found = contrast(palette[front], palette[ground]);
            assert!(found >= least, "{front} on {ground}: {found:.2}");
        };
        for ground in grounds {
            ["ink", "muted", "link"].iter().for_each(|text| holds(text, ground, 4.5));
        }
        for verdict in verdicts {
            for ground in [&format!("{verdict}-soft"), "paper", "card", "sunken"] {
                holds(verdict, ground, 4.5);
            }
        }
        for (text, ground) in [("ink", "pass-soft"), ("ink", "fail-soft"), ("muted", "pass-soft")] {
            holds(text, ground, 4.5);
        }
        for ground in ["paper", "card", "sunken"] {
            holds("gold", ground, 3.0);
        }
        holds("edge", "card", 3.0);
        holds("edge", "paper", 3.0);
    }
}
