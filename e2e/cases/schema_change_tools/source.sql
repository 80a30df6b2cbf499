-- What tools for online changes of a schema do: a copy with triggers (pt-online-schema-change), then a copy that is fed from the log (gh-ost), each swapped with the table by renames while
-- others write to it. Triggers are made on the target, too, and must not fire there for rows.
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, item VARCHAR(40) NOT NULL, status VARCHAR(20) NOT NULL DEFAULT 'new', KEY (item)) ENGINE=InnoDB;
INSERT INTO orders (item) VALUES ('loom'), ('heddle'), ('reed'), ('shuttle'), ('bobbin'), ('temple');
-- pt-online-schema-change
CREATE TABLE `_orders_new` LIKE orders;
ALTER TABLE `_orders_new` ADD COLUMN note VARCHAR(20) NULL, MODIFY status VARCHAR(30) NOT NULL DEFAULT 'new';
CREATE TRIGGER `pt_osc_shop_orders_del` AFTER DELETE ON `shop`.`orders` FOR EACH ROW DELETE IGNORE FROM `shop`.`_orders_new` WHERE `shop`.`_orders_new`.`id` <=> OLD.`id`;
CREATE TRIGGER `pt_osc_shop_orders_ins` AFTER INSERT ON `shop`.`orders` FOR EACH ROW REPLACE INTO `shop`.`_orders_new` (`id`, `item`, `status`) VALUES (NEW.`id`, NEW.`item`, NEW.`status`);
DELIMITER //
CREATE TRIGGER `pt_osc_shop_orders_upd` AFTER UPDATE ON `shop`.`orders` FOR EACH ROW BEGIN
  DELETE IGNORE FROM `shop`.`_orders_new` WHERE !(OLD.`id` <=> NEW.`id`) AND `shop`.`_orders_new`.`id` <=> OLD.`id`;
  REPLACE INTO `shop`.`_orders_new` (`id`, `item`, `status`) VALUES (NEW.`id`, NEW.`item`, NEW.`status`);
END//
DELIMITER ;
UPDATE orders SET status = 'sent' WHERE id IN (2, 5);
INSERT LOW_PRIORITY IGNORE INTO `shop`.`_orders_new` (`id`, `item`, `status`) SELECT `id`, `item`, `status` FROM `shop`.`orders` FORCE INDEX (`PRIMARY`) WHERE `id` >= 1 AND `id` <= 3 LOCK IN SHARE MODE;
DELETE FROM orders WHERE id = 1;
INSERT INTO orders (item) VALUES ('warp'), ('weft');
UPDATE orders SET id = 100, status = 'moved' WHERE id = 3;
INSERT LOW_PRIORITY IGNORE INTO `shop`.`_orders_new` (`id`, `item`, `status`) SELECT `id`, `item`, `status` FROM `shop`.`orders` FORCE INDEX (`PRIMARY`) WHERE `id` > 3 LOCK IN SHARE MODE;
ANALYZE TABLE `shop`.`_orders_new`;
RENAME TABLE `shop`.`orders` TO `shop`.`_orders_old`, `shop`.`_orders_new` TO `shop`.`orders`;
INSERT INTO orders (item, note) VALUES ('comb', 'after the swap');
SET FOREIGN_KEY_CHECKS = 0;
DROP TABLE IF EXISTS `shop`.`_orders_old`;
DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_orders_del`;
DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_orders_upd`;
DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_orders_ins`;
SET FOREIGN_KEY_CHECKS = 1;
-- gh-ost
CREATE /* gh-ost */ TABLE `shop`.`_orders_ghc` (id BIGINT UNSIGNED AUTO_INCREMENT, last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint VARCHAR(64) CHARSET ascii NOT NULL, value VARCHAR(4096) CHARSET ascii NOT NULL, PRIMARY KEY (id), UNIQUE KEY hint_uidx (hint)) AUTO_INCREMENT = 256;
CREATE /* gh-ost */ TABLE `shop`.`_orders_gho` LIKE `shop`.`orders`;
ALTER /* gh-ost */ TABLE `shop`.`_orders_gho` ADD COLUMN more INT NULL;
INSERT /* gh-ost */ INTO `shop`.`_orders_ghc` (id, hint, value) VALUES (NULLIF(2, 0), 'state', 'GhostTableMigrated') ON DUPLICATE KEY UPDATE last_update = NOW(), value = VALUES(value);
BEGIN;
INSERT /* gh-ost */ IGNORE INTO `shop`.`_orders_gho` (`id`, `item`, `status`, `note`) (SELECT `id`, `item`, `status`, `note` FROM `shop`.`orders` FORCE INDEX (`PRIMARY`) WHERE `id` >= 1 LOCK IN SHARE MODE);
COMMIT;
UPDATE orders SET status = 'late' WHERE id IN (4, 100);
DELETE FROM orders WHERE id = 6;
BEGIN;
REPLACE /* gh-ost */ INTO `shop`.`_orders_gho` (`id`, `item`, `status`, `note`) VALUES (4, 'shuttle', 'late', NULL);
REPLACE /* gh-ost */ INTO `shop`.`_orders_gho` (`id`, `item`, `status`, `note`) VALUES (100, 'reed', 'late', NULL);
DELETE /* gh-ost */ FROM `shop`.`_orders_gho` WHERE `id` = 6;
COMMIT;
CREATE /* gh-ost */ TABLE `shop`.`_orders_del` (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB COMMENT='ghost-cut-over-sentry';
DROP /* gh-ost */ TABLE IF EXISTS `shop`.`_orders_del`;
RENAME /* gh-ost */ TABLE `shop`.`orders` TO `shop`.`_orders_del`, `shop`.`_orders_gho` TO `shop`.`orders`;
INSERT INTO orders (item, more) VALUES ('after', 1);
DROP /* gh-ost */ TABLE IF EXISTS `shop`.`_orders_ghc`;
DROP /* gh-ost */ TABLE IF EXISTS `shop`.`_orders_del`;
