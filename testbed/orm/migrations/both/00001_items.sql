-- +goose Up
CREATE TABLE items (id bigserial PRIMARY KEY);
store:b CREATE TABLE items (id bigserial PRIMARY KEY);

-- +goose Down
DROP TABLE items;
store:b DROP TABLE items;
