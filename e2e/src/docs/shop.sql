CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT PRIMARY KEY, item VARCHAR(40) NOT NULL, status VARCHAR(20) NOT NULL DEFAULT 'new');
INSERT INTO shop.orders (id, item) VALUES (1, 'loom'), (2, 'heddle');
INSERT INTO shop.orders (id, item) VALUES (3, 'reed hook');
