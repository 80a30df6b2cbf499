//! The report as data: `--json` is this. Names and units are stable; fields may be added.

use std::collections::BTreeMap;

use serde::Serialize;

use replica::settings::Setting;

/// All that was found out about a log.
#[derive(Debug, Serialize)]
pub struct InspectReport {
    pub verdict: Verdict,
    pub transactions: u64,
    pub rows: u64,
    pub inserts: u64,
    pub updates: u64,
    pub deletes: u64,
    /// Of the events that were read.
    pub bytes: u64,
    pub unpacked_bytes: u64,
    pub events: u64,
    pub files: Vec<FileReport>,
    pub first_time: Option<String>,
    pub last_time: Option<String>,
    /// Between the first and the last commit.
    pub seconds: f64,
    pub transactions_per_second: Option<f64>,
    /// What is to be known about the figures.
    pub notes: Vec<String>,
    /// `mysql` or `mariadb`.
    pub flavour: &'static str,

    pub amil: Option<f64>,
    pub amil_unmodified: Option<f64>,
    pub pseudo_group_size: Option<f64>,
    pub mariadb_group_size: Option<f64>,
    pub mariadb_group_size_max: Option<u64>,
    pub amil_writeset: Option<f64>,
    pub pseudo_group_size_writeset: Option<f64>,
    /// Null when the log does not name sessions.
    pub amil_writeset_session: Option<f64>,
    pub pseudo_group_size_writeset_session: Option<f64>,
    pub amil_exact: Option<f64>,
    pub pseudo_group_size_exact: Option<f64>,
    /// Null with `--quick`.
    pub exact: Option<ExactReport>,

    /// Transactions that nothing may run beside, by cause; and what else is ordered more coarsely than by key.
    pub barriers: BTreeMap<&'static str, u64>,
    pub barrier_details: Vec<BarrierReport>,
    /// Why MySQL's WRITESET would do without write sets.
    pub writeset_fallbacks: Vec<BarrierReport>,
    pub tables: Vec<TableReport>,
    pub hot_keys: Vec<HotKeyReport>,
    /// The one with most of the rows, and its share of them.
    #[serde(skip)]
    pub busiest_schema: Option<(String, f64)>,
    /// The same by table, the worst first.
    #[serde(skip)]
    pub hot_tables: Vec<HotTable>,
    /// By these the counts of `hot_keys` may be too small, at most.
    pub hot_keys_missed_max: u64,
    pub largest_transactions: Vec<TransactionReport>,
    pub longest_transactions: Vec<TransactionReport>,
    /// The one that takes longest to apply of those that may run beside others.
    #[serde(skip)]
    pub slowest_transaction: Option<TransactionReport>,
    pub rows_histogram: Vec<BucketReport>,
    pub bytes_histogram: Vec<BucketReport>,
    pub series: SeriesReport,
    pub table_series: TableSeriesReport,
    pub findings: Vec<Finding>,
    /// What could not be read.
    pub problems: Vec<ProblemReport>,
    pub problems_not_listed: u64,
}

#[derive(Debug, Serialize)]
pub struct FileReport {
    pub path: String,
    pub bytes: u64,
    pub server_version: Option<String>,
}

/// With exact dependencies, in windows of consecutive transactions.
#[derive(Debug, Serialize)]
pub struct ExactReport {
    pub window_transactions: usize,
    pub windows: u64,
    /// Transactions that could run beside each other.
    pub width_average: Option<f64>,
    pub width_max: u64,
    /// The longest chains, in transactions, all windows together.
    pub critical_path_transactions: u64,
    /// The same in estimated time.
    pub critical_path_seconds: f64,
    pub work_seconds: f64,
    /// `work_seconds` ÷ `critical_path_seconds`: no number of workers gives more.
    pub speedup_max: Option<f64>,
    /// Shares of `critical_path_seconds` by what the transactions on it waited for.
    pub critical_path_by: BTreeMap<String, f64>,
    pub cost_transaction_us: f64,
    pub cost_row_us: f64,
}

#[derive(Debug, Serialize)]
pub struct BarrierReport {
    pub cause: &'static str,
    pub title: String,
    pub count: u64,
    /// That the statements ran on the source, all together.
    pub seconds: u64,
    /// That the longest one ran.
    pub longest_seconds: u64,
    pub critical_share: Option<f64>,
    pub example: ExampleReport,
    pub advice: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub struct ExampleReport {
    pub gtid: Option<String>,
    pub file: String,
    pub position: u64,
    pub statement: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct TableReport {
    pub schema: String,
    pub table: String,
    pub transactions: u64,
    pub inserts: u64,
    pub updates: u64,
    pub deletes: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Null: by key. Else why its rows are ordered as a whole.
    pub ordered_as_a_whole: Option<&'static str>,
    /// Of the critical path, waiting for this table as a whole.
    pub critical_share: Option<f64>,
    /// Of the critical path, waiting for its rows, as far as they are among those that are counted.
    pub keys_critical_share: Option<f64>,
    /// Who waited for it as a whole.
    pub example: Option<ExampleReport>,
}

#[derive(Debug, Serialize)]
pub struct HotKeyReport {
    pub schema: Option<String>,
    pub table: Option<String>,
    pub index: Option<String>,
    /// Null: it never came often enough in one stretch of the log to be decoded.
    pub values: Option<String>,
    /// Transactions that wrote it, in windows where more than one did.
    pub transactions: u64,
    /// That may be missing in `transactions`.
    pub error: u64,
    pub critical_share: f64,
    /// Of that, children that waited for their parent.
    pub reference_share: f64,
    /// Who waited for it.
    pub example: Option<ExampleReport>,
}

/// The rows of one table that are on the critical path.
#[derive(Debug)]
pub struct HotTable {
    /// Null: of tables whose keys were not decoded.
    pub name: Option<String>,
    pub rows: usize,
    pub transactions: u64,
    pub error: u64,
    pub critical_share: f64,
    pub reference_share: f64,
    /// The hottest of them.
    pub values: Vec<String>,
    pub example: Option<ExampleReport>,
}

#[derive(Debug, Serialize)]
pub struct TransactionReport {
    #[serde(flatten)]
    pub example: ExampleReport,
    pub time: String,
    pub rows: u64,
    pub bytes: u64,
    pub seconds: u32,
}

#[derive(Debug, Serialize)]
pub struct BucketReport {
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

#[derive(Debug, Serialize)]
pub struct SeriesReport {
    /// Width of a bucket.
    pub seconds: u64,
    pub buckets: Vec<MinuteReport>,
}

#[derive(Debug, Serialize)]
pub struct MinuteReport {
    pub time: String,
    #[serde(skip)]
    pub start: u64,
    /// Of the bucket, what the log has: a part of the first and of the last one.
    pub covered_seconds: f64,
    pub transactions: u64,
    pub inserts: u64,
    pub updates: u64,
    pub deletes: u64,
    pub bytes: u64,
    pub amil: Option<f64>,
    pub amil_unmodified: Option<f64>,
    pub pseudo_group_size: Option<f64>,
    pub amil_writeset: Option<f64>,
    pub pseudo_group_size_writeset: Option<f64>,
    pub amil_writeset_session: Option<f64>,
    pub pseudo_group_size_writeset_session: Option<f64>,
    pub amil_exact: Option<f64>,
    pub pseudo_group_size_exact: Option<f64>,
    pub mariadb_group_size: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct TableSeriesReport {
    pub seconds: u64,
    pub buckets: Vec<TableMinuteReport>,
}

#[derive(Debug, Serialize)]
pub struct TableMinuteReport {
    pub time: String,
    #[serde(skip)]
    pub start: u64,
    pub covered_seconds: f64,
    /// Null: all tables that were too many to be told apart.
    pub table: Option<String>,
    pub inserts: u64,
    pub updates: u64,
    pub deletes: u64,
    pub bytes: u64,
}

#[derive(Debug, Serialize)]
pub struct ProblemReport {
    pub file: String,
    pub offset: u64,
    pub problem: String,
}

/// The report in one sentence, and what that sentence is made of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    pub sentence: String,
    /// A finding's kind, or `nothing`, `too_short`, `keys_not_read`.
    pub limit: String,
    /// Of the critical path.
    pub critical_share: Option<f64>,
    /// How many times as fast as with one worker a replica can be.
    pub speedup_max: Option<f64>,
    /// What to change first; empty: nothing.
    pub change: String,
    /// Where: `source`, `replica`, `application`, `heddle`; empty: nowhere.
    pub server: &'static str,
    /// What to set so that a replica uses the parallelism that is there, the first one first.
    pub settings: Vec<Setting>,
}

/// One thing that holds a replica back.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// Stable: `hot_key`, `table_without_key`, `keys_unknown`, a barrier's cause, and so on.
    pub kind: String,
    pub title: String,
    pub evidence: String,
    pub advice: String,
    /// Of the critical path; null where it is not measured by that.
    pub critical_share: Option<f64>,
    pub example: Option<ExampleReport>,
    /// The share of its time that a replica with 16 workers would gain without this; null where it is not measured by that.
    pub weight: Option<f64>,
    /// Where to change something: `source`, `replica`, `application`, `heddle`.
    pub server: &'static str,
    /// What to change, in a few words.
    pub change: &'static str,
    /// The title in the words of a sentence: "waits for …".
    #[serde(skip)]
    pub subject: String,
}
