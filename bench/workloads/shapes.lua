-- Workloads that are hard on a replica, for sysbench; one transaction an event, one row a transaction. --shape says which:
--   hot1, hot10   every transaction updates one row, or one of ten
--   zipf          rows by Zipf's law with exponent 0.99
--   no_key        updates by a column without an index, of a table without any key of 200 rows
--   wide          rows of 500 columns
--   blobs         rows with 64 KiB of random bytes
-- --tables is the number of tables, --table_size the number of rows of each.

sysbench.cmdline.options = {
   shape = {"hot1, hot10, zipf, no_key, wide or blobs", "hot1"},
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
}

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
   con:disconnect()
end

-- Sums of 1 / rank ^ exponent, up to each rank.
local sums

function thread_init()
   con = sysbench.sql.driver():connect()
   local kind, rows = shape()
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

function event()
   local kind, rows = shape()
   local number = sysbench.rand.uniform(1, sysbench.opt.tables)
   local id = kind.exponent and ranked(rows) or sysbench.rand.uniform(1, rows)
   con:query(("UPDATE shape%d SET n = n + 1%s WHERE id = %d"):format(number, kind.set or "", id))
end
