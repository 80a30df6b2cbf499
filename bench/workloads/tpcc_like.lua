-- A mix in the manner of TPC-C, for sysbench: new orders (45 %), payments (43 %), deliveries (12 %). --tables is the number of
-- warehouses; --table_size the number of items. Only what writes is here: replicas do not see the rest.

sysbench.cmdline.options = {
   tables = {"Number of warehouses", 4},
   table_size = {"Number of items", 10000},
}

local districts, customers = 10, 300

local function connect()
   return sysbench.sql.driver():connect()
end

function prepare()
   local con = connect()
   local warehouses, items = sysbench.opt.tables, sysbench.opt.table_size
   for _, sql in ipairs {
      "CREATE TABLE warehouse (w INT PRIMARY KEY, ytd DECIMAL(12,2) NOT NULL, name VARCHAR(10) NOT NULL) ENGINE=InnoDB",
      [[CREATE TABLE district (w INT, d INT, next_order INT NOT NULL, ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w, d)) ENGINE=InnoDB]],
      [[CREATE TABLE customer (w INT, d INT, c INT, balance DECIMAL(12,2) NOT NULL, payments INT NOT NULL, last VARCHAR(16) NOT NULL,
         data VARCHAR(400) NOT NULL, PRIMARY KEY (w, d, c), KEY (w, d, last)) ENGINE=InnoDB]],
      [[CREATE TABLE stock (w INT, i INT, quantity INT NOT NULL, ytd INT NOT NULL, orders INT NOT NULL, data VARCHAR(50) NOT NULL,
         PRIMARY KEY (w, i)) ENGINE=InnoDB]],
      [[CREATE TABLE orders (w INT, d INT, o INT, c INT NOT NULL, entered DATETIME NOT NULL, carrier INT, line_count INT NOT NULL,
         PRIMARY KEY (w, d, o), KEY (w, d, c, o)) ENGINE=InnoDB]],
      "CREATE TABLE new_orders (w INT, d INT, o INT, PRIMARY KEY (w, d, o)) ENGINE=InnoDB",
      [[CREATE TABLE order_line (w INT, d INT, o INT, number INT, i INT NOT NULL, delivered DATETIME, quantity INT NOT NULL,
         amount DECIMAL(8,2) NOT NULL, info CHAR(24) NOT NULL, PRIMARY KEY (w, d, o, number)) ENGINE=InnoDB]],
      [[CREATE TABLE history (id BIGINT PRIMARY KEY AUTO_INCREMENT, w INT NOT NULL, d INT NOT NULL, c INT NOT NULL, amount DECIMAL(8,2)
         NOT NULL, at DATETIME NOT NULL) ENGINE=InnoDB]],
   } do
      con:query(sql)
   end
   for w = 1, warehouses do
      con:query(("INSERT INTO warehouse VALUES (%d, 0, 'name')"):format(w))
      con:bulk_insert_init("INSERT INTO stock VALUES")
      for i = 1, items do
         con:bulk_insert_next(("(%d, %d, 100, 0, 0, REPEAT('s', 50))"):format(w, i))
      end
      con:bulk_insert_done()
      for d = 1, districts do
         con:query(("INSERT INTO district VALUES (%d, %d, 1, 0)"):format(w, d))
         con:bulk_insert_init("INSERT INTO customer VALUES")
         for c = 1, customers do
            con:bulk_insert_next(("(%d, %d, %d, 0, 0, 'LAST%d', REPEAT('c', 300))"):format(w, d, c, c % 100))
         end
         con:bulk_insert_done()
      end
   end
   con:disconnect()
end

function thread_init()
   con = connect()
end

function thread_done()
   con:disconnect()
end

local function pick()
   local uniform = sysbench.rand.uniform
   return uniform(1, sysbench.opt.tables), uniform(1, districts), uniform(1, customers)
end

local function new_order()
   local w, d, c = pick()
   local lines = sysbench.rand.uniform(5, 15)
   local order = con:query_row(("SELECT next_order FROM district WHERE w = %d AND d = %d FOR UPDATE"):format(w, d))
   con:query(("UPDATE district SET next_order = next_order + 1 WHERE w = %d AND d = %d"):format(w, d))
   con:query(("INSERT INTO orders VALUES (%d, %d, %d, %d, NOW(), NULL, %d)"):format(w, d, order, c, lines))
   con:query(("INSERT INTO new_orders VALUES (%d, %d, %d)"):format(w, d, order))
   -- In the order of the key, so that two orders do not wait for each other in a circle.
   local chosen, seen = {}, {}
   while #chosen < lines do
      local i = sysbench.rand.uniform(1, sysbench.opt.table_size)
      if not seen[i] then
         seen[i] = true
         chosen[#chosen + 1] = i
      end
   end
   table.sort(chosen)
   for number, i in ipairs(chosen) do
      local quantity = sysbench.rand.uniform(1, 10)
      con:query(([[UPDATE stock SET quantity = IF(quantity > %d, quantity - %d, quantity + 91), ytd = ytd + %d, orders = orders + 1
         WHERE w = %d AND i = %d]]):format(quantity, quantity, quantity, w, i))
      con:query(("INSERT INTO order_line VALUES (%d, %d, %d, %d, %d, NULL, %d, %d.5, 'info')"):format(w, d, order, number, i, quantity, i % 90))
   end
end

local function payment()
   local w, d, c = pick()
   local amount = sysbench.rand.uniform(1, 5000)
   con:query(("UPDATE warehouse SET ytd = ytd + %d WHERE w = %d"):format(amount, w))
   con:query(("UPDATE district SET ytd = ytd + %d WHERE w = %d AND d = %d"):format(amount, w, d))
   con:query(("UPDATE customer SET balance = balance - %d, payments = payments + 1 WHERE w = %d AND d = %d AND c = %d"):format(amount, w, d, c))
   con:query(("INSERT INTO history (w, d, c, amount, at) VALUES (%d, %d, %d, %d, NOW())"):format(w, d, c, amount))
end

local function delivery()
   local w, d = pick()
   local order = con:query_row(("SELECT o FROM new_orders WHERE w = %d AND d = %d ORDER BY o LIMIT 1 FOR UPDATE"):format(w, d))
   if order then
      con:query(("DELETE FROM new_orders WHERE w = %d AND d = %d AND o = %d"):format(w, d, order))
      con:query(("UPDATE orders SET carrier = 7 WHERE w = %d AND d = %d AND o = %d"):format(w, d, order))
      con:query(("UPDATE order_line SET delivered = NOW() WHERE w = %d AND d = %d AND o = %d"):format(w, d, order))
   end
end

function event()
   local turn = sysbench.rand.uniform(1, 100)
   con:query("BEGIN")
   if turn <= 45 then new_order() elseif turn <= 88 then payment() else delivery() end
   con:query("COMMIT")
end

function sysbench.hooks.before_restart_event()
   con:query("ROLLBACK")
end
