//! The best assignment of rows to columns, one row after another.
//!
//! Finds the matching of greatest total weight in a bipartite graph (Hungarian method by shortest
//! augmenting paths). Weights are whole numbers, so totals are exact. Rows may stay unmatched. After
//! each added row the total is that of the rows so far, so an alignment can try every segment from a
//! given start in one pass.

/// A matching that grows by rows.
pub(super) struct Matching<'w> {
    /// The weights of the rows added so far, one for each column.
    rows: Vec<&'w [i128]>,
    row_potential: Vec<i128>,
    column_potential: Vec<i128>,
    /// The row that each column is matched with.
    row_of: Vec<Option<usize>>,
}

impl<'w> Matching<'w> {
    /// A matching without rows.
    pub(super) fn new(columns: usize) -> Self {
        Matching {
            rows: Vec::new(),
            row_potential: Vec::new(),
            column_potential: vec![0; columns],
            row_of: vec![None; columns],
        }
    }

    /// The greatest total weight for the rows added so far.
    pub(super) fn total(&self) -> i128 {
        let weight = |(column, row): (usize, &Option<usize>)| row.map(|row| self.rows[row][column]);
        self.row_of.iter().enumerate().filter_map(weight).sum()
    }

    /// Adds a row with one weight, not negative, for each column.
    pub(super) fn add(&mut self, weights: &'w [i128]) {
        let new = self.rows.len();
        self.rows.push(weights);
        self.row_potential.push(0);
        let columns = self.row_of.len();
        // Costs are negative weights. Potentials keep every reduced cost at 0 or above and that of
        // matched pairs at 0. To stay unmatched costs 0, for any number of rows, and ends the search.
        let mut distance = vec![i128::MAX; columns];
        let mut reached_from: Vec<Option<usize>> = vec![None; columns];
        let mut visited: Vec<usize> = Vec::new();
        let mut is_visited = vec![false; columns];
        let (mut out_distance, mut out_from) = (i128::MAX, None);
        let (mut row, mut from) = (new, None);
        let end = loop {
            for column in (0..columns).filter(|&column| !is_visited[column]) {
                let cost = -self.rows[row][column];
                let reduced = cost - self.row_potential[row] - self.column_potential[column];
                if reduced < distance[column] {
                    distance[column] = reduced;
                    reached_from[column] = from;
                }
            }
            if -self.row_potential[row] < out_distance {
                out_distance = -self.row_potential[row];
                out_from = from;
            }
            let nearest = (0..columns)
                .filter(|&column| !is_visited[column])
                .min_by_key(|&column| distance[column])
                .filter(|&column| distance[column] < out_distance);
            let step = nearest.map_or(out_distance, |column| distance[column]);
            self.row_potential[new] += step;
            for &column in &visited {
                self.column_potential[column] -= step;
                if let Some(row) = self.row_of[column] {
                    self.row_potential[row] += step;
                }
            }
            out_distance -= step;
            for column in (0..columns).filter(|&column| !is_visited[column]) {
                distance[column] -= step;
            }
            let Some(column) = nearest else { break out_from };
            is_visited[column] = true;
            visited.push(column);
            match self.row_of[column] {
                None => break Some(column),
                Some(matched) => (row, from) = (matched, Some(column)),
            }
        };
        // Shift the rows along the path; the row of its last column, if any, stays unmatched.
        let mut at = end;
        while let Some(column) = at {
            at = reached_from[column];
            self.row_of[column] = at.map_or(Some(new), |previous| self.row_of[previous]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tries every way to match.
    fn by_trial(rows: &[Vec<i128>], used: &mut Vec<bool>) -> i128 {
        let Some((row, rest)) = rows.split_first() else { return 0 };
        let mut best = by_trial(rest, used);
        for column in 0..row.len() {
            if !used[column] {
                used[column] = true;
                best = best.max(row[column] + by_trial(rest, used));
                used[column] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn after_each_row_the_total_is_the_best_possible(
            rows in (0_usize..5).prop_flat_map(|columns| {
                prop::collection::vec(prop::collection::vec(0_i128..6, columns), 0..6)
            })
        ) {
            let columns = rows.first().map_or(0, Vec::len);
            let mut matching = Matching::new(columns);
            for (position, row) in rows.iter().enumerate() {
                matching.add(row);
                let best = by_trial(&rows[..=position], &mut vec![false; columns]);
                prop_assert_eq!(matching.total(), best);
            }
        }
    }
}
