-- Workloads that are hard on a replica, for sysbench; one transaction an event, one row a transaction. --shape says which:
--   hot1, hot10   every transaction updates one row, or one of ten
--   zipf          rows by Zipf's law with exponent 0.99
--   no_key        updates by a column without an index, of a table without any key of 200 rows
--   wide          rows of 500 columns
--   blobs         rows with 64 KiB of random bytes
--   statements    logged as statements
--   mixed         three of four logged as statements, the others as rows (binlog_format=MIXED with statements that are not safe)
--   xa            each transaction is a branch, prepared and committed by its session
--   definitions   a hundredth of the transactions makes a table, or drops it
--   truncate_rows, alter_rows   a cycle of four transactions: a table is truncated (a column is added, or dropped), then a row goes into it and into two others
--   creates, alters, truncates, grants   nothing but these: tables that are made and dropped, a column that is added and dropped, TRUNCATE, GRANT and REVOKE
-- --tables is the number of tables, --table_size the number of rows of each.

sysbench.cmdline.options = {
   shape = {"hot1, hot10, zipf, no_key, wide, blobs, statements, mixed, xa, definitions, truncate_rows, alter_rows, creates, alters, truncates or grants", "hot1"},
   tables = {"Number of tables", 1},
   table_size = {"Rows of each table", 1000},
}

local columns = 500
local shapes = {
   hot1 = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, rows = 1},
   hot10 = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, rows = 10},
   zipf = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, exponent = 0.99},
   no_key = {definition = "id INT NOT NULL, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, rows = 200},
   wide = {
      definition = (function()
         local list = {"id INT PRIMARY KEY", "n INT NOT NULL"}
         for c = 1, columns - 2 do list[#list + 1] = ("c%d INT NOT NULL DEFAULT %d"):format(c, c) end
         return table.concat(list, ", ")
      end)(),
      names = " (id, n)",
      row = function(id) return ("(%d, 0)"):format(id) end,
   },
   blobs = {
      definition = "id INT PRIMARY KEY, n INT NOT NULL, data MEDIUMBLOB NOT NULL",
      row = function(id) return ("(%d, 0, REPEAT('x', 1024))"):format(id) end,
      set = ", data = REPEAT(UNHEX(SHA2(RAND(), 256)), 2048)",
   },
   statements = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, format = "STATEMENT"},
   mixed = {
      definition = "id INT PRIMARY KEY, n INT NOT NULL",
      row = function(id) return ("(%d, 0)"):format(id) end,
      format = "MIXED",
      unsafe = " + LENGTH(UUID()) - 36",
   },
   xa = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, branches = true},
   definitions = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, every = 100},
}

local made = 0

-- A table of 21 columns is defined anew, and has rows at once.
local function cycle(define)
   local list = {"id INT AUTO_INCREMENT PRIMARY KEY", "n INT NOT NULL"}
   for c = 1, 19 do list[#list + 1] = ("c%d VARCHAR(20) NOT NULL DEFAULT 'c'"):format(c) end
   return {
      definition = table.concat(list, ", "),
      names = " (n)",
      row = function(id) return ("(%d)"):format(id) end,
      cycle = function()
         local number = define()
         for _ = 1, 3 do
            con:query(("INSERT INTO shape%d (n) VALUES (%d)"):format(number, made))
            number = sysbench.rand.uniform(1, sysbench.opt.tables)
         end
         made = made + 1
      end,
   }
end
shapes.truncate_rows = cycle(function()
   local number = sysbench.rand.uniform(1, sysbench.opt.tables)
   con:query(("TRUNCATE TABLE shape%d"):format(number))
   return number
end)
-- Of this session's own tables, each twice in a row.
shapes.alter_rows = cycle(function()
   local turn = math.floor(made / 2) % math.max(math.floor(sysbench.opt.tables / sysbench.opt.threads), 1)
   local number = (turn * sysbench.opt.threads + sysbench.tid) % sysbench.opt.tables + 1
   con:query(("ALTER TABLE shape%d %s"):format(number, made % 2 == 0 and "ADD COLUMN more INT" or "DROP COLUMN more"))
   return number
end)

-- Each makes something of this session's, and takes it back with the next call.
local streams = {
   creates = function(is_made)
      local name = ("made_%d_%d"):format(sysbench.tid, math.floor(made / 2))
      return is_made and ("CREATE TABLE %s (id INT PRIMARY KEY) ENGINE=InnoDB"):format(name) or "DROP TABLE " .. name
   end,
   alters = function(is_made)
      return ("ALTER TABLE shape%d %s"):format(sysbench.tid % sysbench.opt.tables + 1, is_made and "ADD COLUMN more INT" or "DROP COLUMN more")
   end,
   truncates = function()
      return ("TRUNCATE TABLE shape%d"):format(sysbench.tid % sysbench.opt.tables + 1)
   end,
   grants = function(is_made)
      return (is_made and "GRANT SELECT ON made.t%d TO reader" or "REVOKE SELECT ON made.t%d FROM reader"):format(sysbench.tid)
   end,
}
for name, statement in pairs(streams) do
   shapes[name] = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, every = 1, statement = statement}
end
shapes.definitions.statement = streams.creates

local function shape()
   local found = shapes[sysbench.opt.shape]
   assert(found, "unknown shape " .. sysbench.opt.shape)
   return found, math.min(found.rows or sysbench.opt.table_size, sysbench.opt.table_size)
end

function prepare()
   local con = sysbench.sql.driver():connect()
   local kind, rows = shape()
   for number = 1, sysbench.opt.tables do
      con:query(("CREATE TABLE shape%d (%s) ENGINE=InnoDB"):format(number, kind.definition))
      con:bulk_insert_init(("INSERT INTO shape%d%s VALUES"):format(number, kind.names or ""))
      for id = 1, rows do
         con:bulk_insert_next(kind.row(id))
      end
      con:bulk_insert_done()
   end
   if sysbench.opt.shape == "grants" then
      con:query("CREATE USER reader")
      con:query("CREATE DATABASE made")
      for number = 0, 63 do con:query(("CREATE TABLE made.t%d (id INT PRIMARY KEY)"):format(number)) end
   end
   con:disconnect()
end

-- Sums of 1 / rank ^ exponent, up to each rank.
local sums

function thread_init()
   con = sysbench.sql.driver():connect()
   local kind, rows = shape()
   if kind.format then
      con:query(("SET SESSION binlog_format = '%s'"):format(kind.format))
   end
   if kind.exponent then
      sums = {}
      local sum = 0
      for rank = 1, rows do
         sum = sum + rank ^ -kind.exponent
         sums[rank] = sum
      end
   end
end

-- Each rank as often as its share of the last sum.
local function ranked(rows)
   local goal = sysbench.rand.uniform_double() * sums[rows]
   local low, high = 1, rows
   while low < high do
      local middle = math.floor((low + high) / 2)
      if sums[middle] < goal then low = middle + 1 else high = middle end
   end
   return low
end

function thread_done()
   con:disconnect()
end

local events = 0

local function define(kind)
   con:query(kind.statement(made % 2 == 0))
   made = made + 1
end

function event()
   local kind, rows = shape()
   events = events + 1
   if kind.every and events % kind.every == 0 then return define(kind) end
   if kind.cycle then return kind.cycle() end
   local number = sysbench.rand.uniform(1, sysbench.opt.tables)
   local id = kind.exponent and ranked(rows) or sysbench.rand.uniform(1, rows)
   local more = kind.unsafe and events % 4 == 0 and kind.unsafe or kind.set or ""
   local branch = kind.branches and ("'%d %d'"):format(sysbench.tid, events)
   if branch then con:query("XA START " .. branch) end
   con:query(("UPDATE shape%d SET n = n + 1%s WHERE id = %d"):format(number, more, id))
   if branch then
      con:query("XA END " .. branch)
      con:query("XA PREPARE " .. branch)
      con:query("XA COMMIT " .. branch)
   end
end
