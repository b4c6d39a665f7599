-- +goose Up
CREATE TABLE items (id bigserial PRIMARY KEY);
INSERT INTO nowhere VALUES (1);
