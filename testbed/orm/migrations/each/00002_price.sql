-- +goose Up
ALTER TABLE items ADD COLUMN price bigint NOT NULL DEFAULT 0;
-- +goose StatementBegin
DO $$
BEGIN
	INSERT INTO items (name) VALUES ('store:b; COMMIT');
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE items DROP COLUMN price;
