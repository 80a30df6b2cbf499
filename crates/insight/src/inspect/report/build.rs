//! Makes the report of what was found: numbers into fields, nothing is worded here but names that are stable.

use std::collections::{BTreeMap, HashSet};

use engine::quality::exact::Link;
use engine::quality::intervals::pseudo_group_size;
use engine::quality::{Histogram, Intervals};
use engine::schema::{TableId, TableOrderCause};
use engine::survey::totals::{Blocker, Example, OTHER_TABLES, OtherClock, SizedTransaction, TableTotal};
use engine::survey::{Cause, Depth};

use super::advice;
use super::findings;
use super::model::{
    BarrierReport, BucketReport, ExactReport, ExampleReport, FileReport, HotKeyReport, HotTable, InspectReport,
    MinuteReport, ProblemReport, SeriesReport, TableMinuteReport, TableReport, TableSeriesReport, TransactionReport,
    Verdict,
};
use super::verdict;
use crate::inspect::LogSurvey;
use output::numbers::{duration, thousands, utc};

/// Rows of a table that are named together.
const ROWS_NAMED: usize = 5;

/// What the reasons on the critical path are called.
pub fn link_name(link: Link) -> String {
    match link {
        Link::Free => "nothing".to_owned(),
        Link::Key(_) => "key".to_owned(),
        Link::Reference(_) => "foreign_key".to_owned(),
        Link::Table(_) => "table".to_owned(),
        Link::Large => "large_transaction".to_owned(),
        Link::Barrier(number) => Cause::of_number(number).map_or("barrier", Cause::as_str).to_owned(),
    }
}

/// What is told of why a table is ordered as a whole, without a target to ask.
pub fn table_order_name(cause: TableOrderCause) -> &'static str {
    match cause {
        TableOrderCause::NoUniqueKey => "no_key",
        TableOrderCause::KeyNotNormalised => "key_of_unknown_collation",
        TableOrderCause::FunctionalKey => "functional_key",
        TableOrderCause::NotInCatalogue => "keys_unknown",
        TableOrderCause::ColumnsDiffer => "definition_differs",
        TableOrderCause::ForeignKeyUnknown => "foreign_key_unknown",
        TableOrderCause::NotTransactional => "non_transactional",
    }
}

/// Hot keys and tables that are told.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub hot_keys: usize,
    pub tables: usize,
}

impl InspectReport {
    pub fn new(mut found: LogSurvey, limits: Limits) -> Self {
        let exact = (found.totals.depth >= Depth::Keys).then(|| exact_report(&mut found));
        let totals = &mut found.totals;
        let seconds = match (totals.first_time_us, totals.last_time_us) {
            (Some(first), Some(last)) => (last - first) as f64 / 1e6,
            _ => 0.0,
        };
        let keys = totals.depth >= Depth::Keys;
        let amil = |intervals: &Intervals| intervals.amil().filter(|_| keys);
        let group = |intervals: &Intervals| intervals.pseudo_group_size().filter(|_| keys);
        let session = Some(totals.session).filter(|_| totals.has_sessions());
        let mut report = InspectReport {
            verdict: Verdict::default(),
            transactions: totals.transactions,
            rows: totals.traffic.rows(),
            inserts: totals.traffic.inserts,
            updates: totals.traffic.updates,
            deletes: totals.traffic.deletes,
            bytes: totals.bytes,
            unpacked_bytes: totals.unpacked_bytes,
            events: totals.events,
            files: Vec::new(),
            first_time: totals.first_time_us.map(utc),
            last_time: totals.last_time_us.map(utc),
            seconds,
            transactions_per_second: (seconds > 0.0).then(|| totals.transactions as f64 / seconds),
            notes: other_clock(&totals.other_clock).into_iter().collect(),
            flavour: if totals.mariadb { "mariadb" } else { "mysql" },
            amil: totals.source.amil(),
            amil_unmodified: totals.source.unmodified(),
            pseudo_group_size: totals.source.pseudo_group_size(),
            mariadb_group_size: totals.groups.mean(),
            mariadb_group_size_max: totals.mariadb.then_some(totals.groups.sizes.max),
            amil_writeset: amil(&totals.writeset),
            pseudo_group_size_writeset: group(&totals.writeset),
            amil_writeset_session: session.as_ref().and_then(amil),
            pseudo_group_size_writeset_session: session.as_ref().and_then(group),
            amil_exact: amil(&totals.exact_intervals),
            pseudo_group_size_exact: group(&totals.exact_intervals),
            exact,
            barriers: BTreeMap::new(),
            barrier_details: Vec::new(),
            writeset_fallbacks: Vec::new(),
            tables: Vec::new(),
            hot_keys: Vec::new(),
            busiest_schema: busiest_schema(totals),
            hot_tables: Vec::new(),
            hot_keys_missed_max: 0,
            largest_transactions: totals.largest.iter().map(transaction).collect(),
            longest_transactions: totals.longest.iter().map(transaction).collect(),
            slowest_transaction: totals.slowest.as_ref().map(transaction),
            rows_histogram: histogram(&totals.rows_histogram),
            bytes_histogram: histogram(&totals.bytes_histogram),
            series: series(&mut found),
            table_series: TableSeriesReport { seconds: 1, buckets: Vec::new() },
            findings: Vec::new(),
            problems: Vec::new(),
            problems_not_listed: found.more_troubles,
        };
        report.add_files(&found);
        report.add_barriers(&mut found);
        report.add_tables(&mut found, limits.tables);
        report.add_hot_keys(&mut found, limits.hot_keys);
        report.add_table_series(&mut found);
        report.findings = findings::find(&report);
        report.verdict = verdict::verdict(&report);
        report
    }

    fn add_files(&mut self, found: &LogSurvey) {
        let file = |seen: &crate::inspect::SurveyedFile| FileReport {
            path: seen.path.display().to_string(),
            bytes: seen.bytes,
            server_version: seen.server_version.clone(),
        };
        self.files = found.files.iter().map(file).collect();
        if self.files.iter().filter_map(|file| file.server_version.as_ref()).any(|version| version.contains("MariaDB"))
        {
            self.flavour = "mariadb";
        }
        self.problems = found
            .troubles
            .iter()
            .map(|trouble| ProblemReport {
                file: trouble.file.display().to_string(),
                offset: trouble.problem.offset,
                problem: trouble.problem.what.clone(),
            })
            .collect();
    }

    fn add_barriers(&mut self, found: &mut LogSurvey) {
        let critical = self.exact.as_ref().map(|exact| exact.critical_path_by.clone()).unwrap_or_default();
        for (&cause, blocker) in &found.totals.barriers {
            self.barriers.insert(cause.as_str(), blocker.count);
            let share = critical.get(cause.as_str()).copied();
            self.barrier_details.push(barrier(cause.as_str(), cause.title().to_owned(), blocker, share));
        }
        if found.totals.rotations > 0 {
            self.barriers.insert("rotation", found.totals.rotations);
            let file = found.totals.first_rotation.clone().unwrap_or_default();
            let position = binlog::FIRST_OFFSET;
            let example = Example { file, position, ..Example::default() };
            let blocker = Blocker { count: found.totals.rotations, example, ..Blocker::default() };
            self.barrier_details.push(barrier("rotation", "new binary log files".to_owned(), &blocker, None));
        }
        self.barrier_details.sort_by_key(|barrier| std::cmp::Reverse(barrier.count));
        for (fallback, blocker) in &found.totals.fallbacks {
            let name = match fallback {
                engine::tags::Fallback::NoWriteSet => "no_write_set",
                engine::tags::Fallback::CreateSelect => "create_select",
                engine::tags::Fallback::Statement => "statement",
                engine::tags::Fallback::MissingKeys => "no_key",
                engine::tags::Fallback::Referenced => "foreign_key",
                engine::tags::Fallback::LargeSet => "large_write_set",
                engine::tags::Fallback::HistoryFull => "history_full",
                engine::tags::Fallback::UnknownKeys => "keys_unknown",
            };
            self.writeset_fallbacks.push(barrier(name, fallback.as_str().to_owned(), blocker, None));
            if matches!(name, "no_key" | "foreign_key" | "history_full" | "large_write_set") {
                self.barriers.insert(name, blocker.count);
            }
        }
        self.writeset_fallbacks.sort_by_key(|barrier| std::cmp::Reverse(barrier.count));
    }

    fn add_tables(&mut self, found: &mut LogSurvey, tables_max: usize) {
        let totals = found.totals.exact.totals();
        let whole = totals.critical_us.max(1) as f64;
        let shares: BTreeMap<_, f64> =
            totals.critical_by_table.iter().map(|(&table, &us)| (table, us as f64 / whole)).collect();
        let mut key_shares: BTreeMap<TableId, f64> = BTreeMap::new();
        for (hash, counter) in totals.hot.top(usize::MAX) {
            if let Some(name) = found.totals.names.get(&hash).filter(|_| counter.value.critical_us > 0) {
                *key_shares.entry(name.table).or_default() += counter.value.critical_us as f64 / whole;
            }
        }
        let mut tables: Vec<TableReport> = found
            .totals
            .tables
            .iter()
            .map(|(id, total)| {
                let mut table = table_report(total, shares.get(id).copied().filter(|_| self.exact.is_some()));
                table.keys_critical_share = key_shares.get(id).copied().filter(|_| self.exact.is_some());
                table.example = found.totals.table_examples.get(id).map(example);
                table
            })
            .collect();
        tables.sort_by(|a, b| {
            let size = |table: &TableReport| (table.bytes, table.rows);
            size(b).cmp(&size(a)).then_with(|| (&a.schema, &a.table).cmp(&(&b.schema, &b.table)))
        });
        // A table on the critical path is told, however small.
        let mut position = 0;
        tables.retain(|table| {
            position += 1;
            let share = table.critical_share.unwrap_or(0.0) + table.keys_critical_share.unwrap_or(0.0);
            position <= tables_max || share >= 0.01
        });
        self.tables = tables;
    }

    fn add_hot_keys(&mut self, found: &mut LogSurvey, keys_max: usize) {
        let totals = &mut found.totals;
        let (names, tables, examples) = (&totals.names, &totals.tables, &totals.key_examples);
        let sums = totals.exact.totals();
        let whole = sums.critical_us.max(1) as f64;
        let mut all = sums.hot.top(usize::MAX);
        // Those that many change are told beside those that the critical path waits for.
        let frequent: HashSet<u64> = all.iter().take(keys_max).map(|(hash, _)| *hash).collect();
        all.sort_by_key(|(hash, counter)| (std::cmp::Reverse((counter.value.critical_us, counter.count)), *hash));
        for (at, (hash, counter)) in all.into_iter().enumerate() {
            let is_told = at < keys_max || frequent.contains(&hash);
            if !is_told && counter.value.critical_us == 0 {
                continue;
            }
            let name = names.get(&hash);
            let table = name.and_then(|name| tables.get(&name.table));
            let key = HotKeyReport {
                schema: table.map(|table| table.schema.clone()),
                table: table.map(|table| table.name.clone()),
                index: name.map(|name| name.index.to_string()),
                values: name.map(|name| name.values.clone()),
                transactions: counter.count,
                error: counter.error,
                critical_share: counter.value.critical_us as f64 / whole,
                reference_share: counter.value.reference_us as f64 / whole,
                example: examples.get(&hash).map(example),
            };
            if key.critical_share > 0.0 {
                note_hot_table(&mut self.hot_tables, &key);
            }
            if is_told {
                self.hot_keys.push(key);
            }
        }
        self.hot_tables.sort_by(|a, b| b.critical_share.total_cmp(&a.critical_share));
        self.hot_keys_missed_max = sums.hot.missed_max();
    }

    fn add_table_series(&mut self, found: &mut LogSurvey) {
        let totals = &mut found.totals;
        let name = |id| {
            totals
                .tables
                .get(&id)
                .filter(|_| id != OTHER_TABLES)
                .map(|table| format!("{}.{}", table.schema, table.name))
        };
        let mut buckets = Vec::new();
        let (times, width) = (times(totals), totals.table_minutes.width_seconds());
        for (start, by_table) in totals.table_minutes.buckets() {
            for (&id, traffic) in &by_table.0 {
                buckets.push(TableMinuteReport {
                    time: utc(start * 1_000_000),
                    start,
                    covered_seconds: covered(start, width, times),
                    table: name(id),
                    inserts: traffic.inserts,
                    updates: traffic.updates,
                    deletes: traffic.deletes,
                    bytes: traffic.bytes,
                });
            }
        }
        self.table_series = TableSeriesReport { seconds: totals.table_minutes.seconds, buckets };
    }
}

/// Statements that can not have run for as long as they state.
fn other_clock(found: &OtherClock) -> Option<String> {
    (found.count > 0).then(|| {
        format!(
            "{} longer than {} can have run (up to {}, at {}:{}): after SET TIMESTAMP, in a replica's own log, or in a log that was fed through mysqlbinlog, \
             what the log states is no duration. Each counts with what is possible.",
            match found.count {
                1 => "one statement states that it ran".to_owned(),
                count => format!("{} statements state that they ran", thousands(count)),
            },
            if found.count == 1 { "it" } else { "they" },
            duration(found.seconds.into()),
            found.example.file,
            found.example.position,
        )
    })
}

fn busiest_schema(totals: &engine::survey::Totals) -> Option<(String, f64)> {
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for table in totals.tables.values() {
        *rows.entry(&table.schema).or_default() += table.traffic.rows();
    }
    let all: u64 = rows.values().sum();
    let (schema, most) = rows.into_iter().max_by_key(|&(_, rows)| rows)?;
    (all > 0).then(|| (schema.to_owned(), most as f64 / all as f64))
}

/// Adds a row to its table's; rows come the hottest first.
fn note_hot_table(list: &mut Vec<HotTable>, key: &HotKeyReport) {
    let name = key.schema.as_ref().zip(key.table.as_ref()).map(|(schema, table)| format!("{schema}.{table}"));
    let at = list.iter().position(|table| table.name == name).unwrap_or_else(|| {
        let example = key.example.clone();
        list.push(HotTable {
            name,
            rows: 0,
            transactions: 0,
            error: 0,
            critical_share: 0.0,
            reference_share: 0.0,
            values: Vec::new(),
            example,
        });
        list.len() - 1
    });
    let Some(table) = list.get_mut(at) else { return };
    table.rows += 1;
    table.transactions += key.transactions;
    table.error += key.error;
    table.critical_share += key.critical_share;
    table.reference_share += key.reference_share;
    if table.values.len() < ROWS_NAMED {
        table.values.extend(key.values.clone());
    }
}

fn exact_report(found: &mut LogSurvey) -> ExactReport {
    let costs = found.totals.costs;
    let totals = found.totals.exact.totals();
    let whole = totals.critical_us.max(1) as f64;
    let mut by = BTreeMap::new();
    for (&link, &us) in &totals.critical_by {
        *by.entry(link_name(link)).or_insert(0.0) += us as f64 / whole;
    }
    ExactReport {
        window_transactions: engine::quality::exact::WINDOW_TRANSACTIONS,
        windows: totals.windows,
        width_average: totals.width(),
        width_max: totals.width_max,
        critical_path_transactions: totals.levels,
        critical_path_seconds: totals.critical_us as f64 / 1e6,
        work_seconds: totals.work_us as f64 / 1e6,
        speedup_max: totals.speedup_max(),
        critical_path_by: by,
        cost_transaction_us: costs.transaction_us,
        cost_row_us: costs.row_us,
    }
}

fn example(example: &Example) -> ExampleReport {
    ExampleReport {
        gtid: example.gtid.as_ref().map(ToString::to_string),
        file: example.file.to_string(),
        position: example.position,
        statement: example.text.as_ref().map(ToString::to_string),
    }
}

fn barrier(cause: &'static str, title: String, blocker: &Blocker, critical_share: Option<f64>) -> BarrierReport {
    BarrierReport {
        cause,
        title,
        count: blocker.count,
        seconds: blocker.exec_us / 1_000_000,
        longest_seconds: blocker.longest_us / 1_000_000,
        critical_share,
        example: example(&blocker.example),
        advice: advice::of(cause),
    }
}

fn table_report(total: &TableTotal, critical_share: Option<f64>) -> TableReport {
    TableReport {
        schema: total.schema.clone(),
        table: total.name.clone(),
        transactions: total.transactions,
        inserts: total.traffic.inserts,
        updates: total.traffic.updates,
        deletes: total.traffic.deletes,
        rows: total.traffic.rows(),
        bytes: total.traffic.bytes,
        ordered_as_a_whole: total.order_by_table.map(table_order_name),
        critical_share,
        keys_critical_share: None,
        example: None,
    }
}

fn transaction(sized: &SizedTransaction) -> TransactionReport {
    TransactionReport {
        example: example(&sized.example),
        time: utc(sized.commit_time_us),
        rows: sized.rows,
        bytes: sized.bytes,
        seconds: sized.duration_seconds,
    }
}

fn histogram(histogram: &Histogram) -> Vec<BucketReport> {
    histogram.buckets().into_iter().map(|(from, to, count)| BucketReport { from, to, count }).collect()
}

/// Of the first and the last commit, in microseconds since 1970.
fn times(totals: &engine::survey::Totals) -> (u64, u64) {
    (totals.first_time_us.unwrap_or(0), totals.last_time_us.unwrap_or(0))
}

/// How much of a bucket lies between the first commit and the last, in seconds: at least one, since some logs have times in whole seconds.
fn covered(start: u64, width: u64, (first_us, last_us): (u64, u64)) -> f64 {
    let from = (start * 1_000_000).max(first_us);
    let to = ((start + width) * 1_000_000).min(last_us.saturating_add(1_000_000));
    (to.saturating_sub(from) as f64 / 1e6).clamp(1.0, width.max(1) as f64)
}

fn series(found: &mut LogSurvey) -> SeriesReport {
    let totals = &mut found.totals;
    let (sessions, mariadb) = (totals.has_sessions(), totals.mariadb);
    let mean = |(count, sum): (u64, u64)| (count > 0).then(|| sum as f64 / count as f64);
    let (times, width) = (times(totals), totals.minutes.width_seconds());
    let buckets = totals
        .minutes
        .buckets()
        .map(|(start, minute)| {
            let [amil, amil_writeset, session, amil_exact] = minute.intervals.map(mean);
            let amil_writeset_session = session.filter(|_| sessions);
            MinuteReport {
                time: utc(start * 1_000_000),
                start,
                covered_seconds: covered(start, width, times),
                transactions: minute.transactions,
                inserts: minute.traffic.inserts,
                updates: minute.traffic.updates,
                deletes: minute.traffic.deletes,
                bytes: minute.bytes,
                amil,
                amil_unmodified: mean((minute.intervals[0].0, minute.unmodified_sum)),
                pseudo_group_size: amil.map(pseudo_group_size),
                amil_writeset,
                pseudo_group_size_writeset: amil_writeset.map(pseudo_group_size),
                amil_writeset_session,
                pseudo_group_size_writeset_session: amil_writeset_session.map(pseudo_group_size),
                amil_exact,
                pseudo_group_size_exact: amil_exact.map(pseudo_group_size),
                mariadb_group_size: mean((minute.groups, minute.transactions)).filter(|_| mariadb),
            }
        })
        .collect();
    SeriesReport { seconds: totals.minutes.seconds, buckets }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_bucket_are_covered_in_part() {
        let second = 1_000_000;
        // From 00:00:50 to 00:02:10.
        let times = (50 * second, 130 * second);
        let of = |start| covered(start, 60, times);
        assert_eq!([of(0), of(60), of(120)], [10.0, 60.0, 11.0]);
        // All in one second, and a log without times.
        assert_eq!(covered(60, 60, (70 * second, 70 * second)), 1.0);
        assert_eq!(covered(0, 60, (0, 0)), 1.0);
    }
}
