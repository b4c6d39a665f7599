package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/testbed/interop/canon"
)

// citiesColumns are those of a table that several engines write to.
const citiesColumns = " (id long NOT NULL, city string, n int)"

// cities is such a table with what it must hold.
type cities struct {
	*venue
	name  string
	wants map[int]canon.Cell // id -> city
	next  int
	seen  tally
	moved int // finishes of what was finished that have changed the table
	again int // all of those
}

func (s *venue) newCities(ctx context.Context, name, properties string) (*cities, error) {
	c := &cities{venue: s, name: name, wants: map[int]canon.Cell{}}
	return c, s.exec(ctx, "CREATE TABLE "+name+citiesColumns+properties)
}

// add makes rows for the cities; "" is NULL.
func (c *cities) add(names ...string) []canon.Row {
	var rows []canon.Row
	for _, name := range names {
		c.next++
		row := canon.Row{"id": strconv.Itoa(c.next), "city": name, "n": "1"}
		if name == "" {
			row["city"] = nil
		}
		c.wants[c.next] = row["city"]
		rows = append(rows, row)
	}
	return rows
}

// remove forgets the rows of a city.
func (c *cities) remove(city string) {
	maps.DeleteFunc(c.wants, func(_ int, x canon.Cell) bool { return x == city })
}

// insertion is an INSERT of rows.
func (c *cities) insertion(rows []canon.Row) string {
	var list []string
	for _, r := range rows {
		city := "NULL"
		if name, ok := r["city"].(string); ok {
			city = "'" + name + "'"
		}
		list = append(list, fmt.Sprintf("(%s, %s, %s)", r["id"], city, r["n"]))
	}
	return "INSERT INTO " + c.name + " (id, city, n) VALUES " + strings.Join(list, ", ")
}

// ask asks a peer for something to the table.
func (c *cities) ask(p *peer, q question) error {
	q.Table = c.name
	_, err := p.ask(q)
	return err
}

func (c *cities) append(p *peer, names ...string) error {
	return c.ask(p, question{Do: "append", Rows: c.add(names...), Txn: rand.Text()})
}

// finish finishes a staged unit as a worker of another process does.
func (c *cities) finish(ctx context.Context, ref branches.Ref) error {
	return c.another.Finish(ctx, ref)
}

// finishAgain finishes a unit that is finished: nothing may change.
func (c *cities) finishAgain(ctx context.Context, ref branches.Ref) error {
	before, err := c.head(ctx, c.name)
	if err != nil {
		return err
	}
	if err := c.another.Finish(ctx, ref); err != nil {
		return err
	}
	after, err := c.head(ctx, c.name)
	c.again++
	if before != after {
		c.moved++
	}
	return err
}

// withEqualityDeletes is what the table is called in an allowance while it has such.
const withEqualityDeletes = "cities_with_equality_deletes"

// same compares what everybody reads with what must be there.
func (c *cities) same(ctx context.Context, title string, hasEqualityDeletes bool) error {
	var want []canon.Row
	for _, id := range slices.Sorted(maps.Keys(c.wants)) {
		want = append(want, canon.Row{"id": strconv.Itoa(id), "city": c.wants[id]})
	}
	ours, err := c.read(ctx, c.name)
	if err != nil {
		return err
	}
	wrong := c.seen.wrong
	if err := c.judge(&c.seen, c.subject("rhizodat", reads, c.name+" ("+title+")"), nil, canon.Differences(want, only(cityColumns, ours.Rows)), nil); err != nil {
		return err
	}
	table := c.name + " (" + title + ")"
	if hasEqualityDeletes {
		table = withEqualityDeletes
	}
	for _, p := range c.peers {
		a, err := p.ask(question{Do: "read", Table: c.name})
		var lines []string
		if err == nil {
			lines = canon.Differences(want, only(cityColumns, a.Rows))
		}
		if err := c.judge(&c.seen, c.subject(p.name, reads, table), err, lines, nil); err != nil {
			return err
		}
	}
	if err := c.sameByClickHouse(ctx, table, want); err != nil {
		return err
	}
	word := "="
	if c.seen.wrong > wrong {
		word = "DIFFERENT"
	}
	fmt.Printf("   %-9s %s\n", word, title)
	return nil
}

// cityColumns are what is compared.
var cityColumns = []string{"id", "city"}

func (c *cities) sameByClickHouse(ctx context.Context, table string, want []canon.Row) error {
	if c.clickhouse == nil {
		return nil
	}
	got, _, err := c.byClickHouse(ctx, c.name)
	if err != nil {
		return err
	}
	lines := []string{got.Error}
	if got.Error == "" {
		lines = canon.Differences(want, only(cityColumns, got.Rows))
	}
	return c.judge(&c.seen, c.subject("clickhouse", reads, table), nil, lines, nil)
}

// oldest is the row with the smallest id.
func (c *cities) oldest() string { return strconv.Itoa(slices.Min(slices.Collect(maps.Keys(c.wants)))) }

func (c *cities) forgetOldest() {
	delete(c.wants, slices.Min(slices.Collect(maps.Keys(c.wants))))
}
