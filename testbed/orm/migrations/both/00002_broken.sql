-- +goose Up
INSERT INTO items DEFAULT VALUES;
store:b INSERT INTO items DEFAULT VALUES;
store:b INSERT INTO nowhere VALUES (1);
