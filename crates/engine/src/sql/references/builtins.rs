//! Names in front of a parenthesis that are no stored functions: the servers' own functions, and words of the grammar. Both servers take a native function's name for
//! that function whatever stored ones there are. Never says what a function does.

/// Whether it is one, in any case.
pub(super) fn is_own_function(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_of_family = ["st_", "mbr", "json_", "is_ipv", "gtid_", "wsrep_", "uuid_", "vec_", "ps_", "sys_"];
    is_of_family.iter().any(|start| name.starts_with(start)) || OWN.split_ascii_whitespace().any(|own| own == name)
}

const OWN: &str = "
values in and or xor not where set on between like case when then else interval div mod by is regexp rlike binary update exists all any some
columns nested select from as with using key index check unique primary references over partition row rows value into limit having offset return if while until
distinct union except intersect table join left right inner cross natural force use ignore default generated always stored virtual sounds escape
char varchar varbinary text tinytext mediumtext longtext blob tinyblob mediumblob longblob decimal dec numeric fixed float double real bit int integer tinyint smallint
mediumint bigint year time timestamp datetime date enum nchar nvarchar national character vector inet4 inet6 number raw varchar2 clob returns unsigned signed
abs acos add_months adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 avg benchmark bin bin_to_uuid binlog_gtid_pos bit_and bit_count
bit_length bit_or bit_xor can_access_column can_access_database cast ceil ceiling char_length character_length chr coalesce coercibility collation column_add
column_check column_create column_delete column_exists column_get column_json column_list compress concat concat_operator_oracle concat_ws connection_id conv convert
convert_tz cos cot count crc32 crc32c cume_dist curdate current_date current_role current_time current_timestamp current_user curtime database date_add date_format
date_sub datediff day dayname dayofmonth dayofweek dayofyear decode decode_histogram decode_oracle degrees dense_rank des_decrypt des_encrypt elt encode encrypt exp
export_set extract extractvalue field find_in_set first_value floor format format_bytes format_pico_time found_rows from_base64 from_days from_unixtime geomcollection
geometrycollection get_format get_lock greatest group_concat grouping hex hour icu_version ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr
is_free_lock is_used_lock is_uuid isnull kdf lag last last_day last_insert_id last_value lastval lcase lead least length lengthb linestring ln load_file localtime
localtimestamp locate log log10 log2 lower lpad ltrim make_set makedate maketime master_gtid_wait master_pos_wait source_pos_wait max md5 median member microsecond mid min
minute month monthname months_between multilinestring multipoint multipolygon name_const natural_sort_key nextval now nth_value ntile nullif nvl nvl2 oct octet_length
ord ordered overlay password percent_rank percentile_cont percentile_disc period_add period_diff pi point polygon position pow power quarter quote radians rand
random_bytes rank regexp_instr regexp_like regexp_replace regexp_substr release_all_locks release_lock repeat replace reverse roles_graphml round row_count
row_number rownum rpad rtrim schema sec_to_time second session_user setval sformat sha sha1 sha2 sign sin sleep soundex space sqrt statement_digest statement_digest_text std
stddev stddev_pop stddev_samp str_to_date strcmp subdate substr substring substring_index subtime sum sysdate system_user tan time_format time_to_sec timediff
timestampadd timestampdiff to_base64 to_char to_date to_days to_number to_seconds trim trim_oracle trunc truncate ucase uncompress uncompressed_length unhex
unix_timestamp updatexml upper user utc_date utc_time utc_timestamp uuid uuid_short uuidv4 uuidv7 validate_password_strength var_pop var_samp variance version
wait_for_executed_gtid_set wait_until_sql_thread_after_gtids week weekday weekofyear weight_string yearweek aria bernoulli contains crosses disjoint equals
intersects overlaps touches within dimension envelope area astext asbinary aswkb aswkt buffer centroid convexhull distance endpoint exteriorring geomfromtext
geomfromwkb geometryfromtext geometryfromwkb geometryn geometrytype glength interiorringn isclosed isempty isring issimple linefromtext linefromwkb
numgeometries numinteriorrings numpoints pointfromtext pointfromwkb pointn polyfromtext polyfromwkb srid startpoint x y
";
