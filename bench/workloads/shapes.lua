-- Workloads that are hard on a replica, for sysbench; one transaction an event, one row a transaction. --shape says which:
--   hot1, hot10   every transaction updates one row, or one of ten
--   no_key        updates by a column without an index, of a table without any key of 200 rows
--   wide          rows of 500 columns
--   blobs         rows with 64 KiB of random bytes
-- --tables is the number of tables, --table_size the number of rows of each.

sysbench.cmdline.options = {
   shape = {"hot1, hot10, no_key, wide or blobs", "hot1"},
   tables = {"Number of tables", 1},
   table_size = {"Rows of each table", 1000},
}

local columns = 500
local shapes = {
   hot1 = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, rows = 1},
   hot10 = {definition = "id INT PRIMARY KEY, n INT NOT NULL", row = function(id) return ("(%d, 0)"):format(id) end, rows = 10},
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
      for id = 1, rows do
         con:query(("INSERT INTO shape%d%s VALUES %s"):format(number, kind.names or "", kind.row(id)))
      end
   end
   con:disconnect()
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function thread_done()
   con:disconnect()
end

function event()
   local kind, rows = shape()
   local number, id = sysbench.rand.uniform(1, sysbench.opt.tables), sysbench.rand.uniform(1, rows)
   con:query(("UPDATE shape%d SET n = n + 1%s WHERE id = %d"):format(number, kind.set or "", id))
end
