package rhizodat_test

import (
	"database/sql"
	"fmt"
	"log"
	"os"
)

// One store and no journal: a transaction over an Iceberg table, with SQL and
// without any server.
func Example_iceberg() {
	dir, err := os.MkdirTemp("", "lake")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	db, err := sql.Open("rhizodat", "lake=iceberg+sqlite://"+dir+"/catalog.db?warehouse=file://"+dir+"/wh&namespace=erp")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, text := range []string{
		"CREATE NAMESPACE erp",
		"CREATE TABLE history (id long NOT NULL, city string, amount decimal(9,2)) PARTITIONED BY (bucket(4, id))",
	} {
		if _, err := db.Exec(text); err != nil {
			log.Fatal(err)
		}
	}

	tx, err := db.Begin()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	for _, row := range [][]any{{1, "Oslo", "10.50"}, {2, nil, "3.25"}} {
		if _, err := tx.Exec("INSERT INTO history VALUES (?, ?, ?)", row...); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := tx.Exec("UPDATE history SET amount = amount + 1 WHERE city IS NULL"); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}

	rows, err := db.Query("SELECT id, city, amount FROM history ORDER BY id")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int
		var city sql.NullString
		var amount string
		if err := rows.Scan(&id, &city, &amount); err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, city.String, amount)
	}
	if err := rows.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 Oslo 10.50
	// 2  4.25
}
