package main

import (
	"context"

	"github.com/rhizodat/rhizodat-go/branches"
)

// mixed lets all engines write to one table, one after the other, with deletes of
// every kind, compaction and expiry between what a unit stages and its finish.
func mixed(ctx context.Context, s *venue) error {
	c, err := s.newCities(ctx, "cities", "")
	if err != nil {
		return err
	}
	late, err := c.writers(ctx)
	if err != nil {
		return err
	}
	added, err := c.deletesOfAllKinds(ctx)
	if err != nil {
		return err
	}
	if err := c.compacted(ctx, late, added); err != nil {
		return err
	}
	vectors, err := s.deletionVectors(ctx)
	if err != nil {
		return err
	}
	s.board.AtLeast(s.prefix+"mixed_equal", c.seen.equal+vectors.seen.equal, 30)
	s.board.Exactly(s.prefix+"mixed_wrong", c.seen.wrong+vectors.seen.wrong, 0)
	s.board.AtLeast(s.prefix+"finished_again", c.again, 8)
	s.board.Exactly(s.prefix+"finished_again_committed", c.moved, 0)
	return nil
}

// writers: each appends, and a peer's rewrite comes between stage and finish.
func (c *cities) writers(ctx context.Context) (late branches.Ref, err error) {
	py, java := c.python(), c.java()
	if err := c.exec(ctx, c.insertion(c.add("oslo", "riga", ""))); err != nil {
		return late, err
	}
	if err := c.append(py, "oslo", "bern", ""); err != nil {
		return late, err
	}
	if err := c.append(java, "riga", "bern"); err != nil {
		return late, err
	}
	if err := c.same(ctx, "three writers", false); err != nil {
		return late, err
	}
	if late, err = c.stage(ctx, c.insertion(c.add("late"))); err != nil {
		return late, err
	}
	delete(c.wants, c.next)
	if err := c.ask(py, question{Do: "delete", City: "oslo"}); err != nil {
		return late, err
	}
	c.remove("oslo")
	if err := c.same(ctx, "PyIceberg's copy-on-write delete of its own and of our rows", false); err != nil {
		return late, err
	}
	c.wants[c.next] = "late"
	if err := c.finish(ctx, late); err != nil {
		return late, err
	}
	return late, c.same(ctx, "an append that was staged before that delete", false)
}

// deletesOfAllKinds: rows that Java has marked as deleted must not come back through
// our rewrites of the files that hold them.
func (c *cities) deletesOfAllKinds(ctx context.Context) (added branches.Ref, err error) {
	py, java := c.python(), c.java()
	if err := c.ask(java, question{Do: "posdelete", ID: "2"}); err != nil {
		return added, err
	}
	delete(c.wants, 2)
	if err := c.same(ctx, "Java's position delete", false); err != nil {
		return added, err
	}
	if err := c.ask(java, question{Do: "eqdelete", City: "bern"}); err != nil {
		return added, err
	}
	c.remove("bern")
	if err := c.same(ctx, "Java's equality delete", true); err != nil {
		return added, err
	}
	if err := c.exec(ctx, c.insertion(c.add("bern", "oslo"))); err != nil {
		return added, err
	}
	if err := c.same(ctx, "an append of a value that an older equality delete names", true); err != nil {
		return added, err
	}
	for _, text := range []string{
		"DELETE FROM cities WHERE city = 'riga'", "UPDATE cities SET n = 2 WHERE city IS NULL", "DELETE FROM cities WHERE city = 'oslo'",
	} {
		if err := c.exec(ctx, text); err != nil {
			return added, err
		}
		c.removeOf(text)
		if err := c.same(ctx, text+" over them", true); err != nil {
			return added, err
		}
	}
	if added, err = c.stage(ctx, c.insertion(c.add("new"))); err != nil {
		return added, err
	}
	if err := c.ask(py, question{Do: "addcolumn", Column: "extra"}); err != nil {
		return added, err
	}
	if err := c.finish(ctx, added); err != nil {
		return added, err
	}
	return added, c.same(ctx, "an append that was staged before PyIceberg added a column", true)
}

// removeOf forgets what a DELETE of the story removes.
func (c *cities) removeOf(text string) {
	for _, city := range []string{"riga", "oslo"} {
		if text == "DELETE FROM cities WHERE city = '"+city+"'" {
			c.remove(city)
		}
	}
}

// compacted: what compaction and expiry leave must still show what was finished,
// and what they come before must still be finished, once.
func (c *cities) compacted(ctx context.Context, finished ...branches.Ref) error {
	py, java := c.python(), c.java()
	for _, between := range []struct {
		title string
		do    []question
		by    *peer
	}{
		{"Java's compaction and expiry", []question{{Do: "compact"}, {Do: "expire"}}, java},
		{"PyIceberg's rewrite and expiry", []question{{Do: "compact"}, {Do: "expire"}}, py},
		{"Java's expiry after PyIceberg's", []question{{Do: "expire"}}, java},
	} {
		appended, err := c.stage(ctx, c.insertion(c.add("appended")))
		if err != nil {
			return err
		}
		// Its files are replaced before it is finished: it is done again on the new ones.
		deleted, err := c.stage(ctx, "DELETE FROM cities WHERE id = "+c.oldest())
		if err != nil {
			return err
		}
		c.forgetOldest()
		if err := c.exec(ctx, c.insertion(c.add("meanwhile"))); err != nil {
			return err
		}
		for _, q := range between.do {
			if err := c.ask(between.by, q); err != nil {
				return err
			}
		}
		for _, ref := range []branches.Ref{appended, deleted} {
			if err := c.finish(ctx, ref); err != nil {
				return err
			}
		}
		if err := c.same(ctx, between.title+" between stage and finish", false); err != nil {
			return err
		}
		finished = append(finished, appended, deleted)
		for _, q := range between.do {
			if err := c.ask(between.by, q); err != nil {
				return err
			}
		}
		for _, ref := range finished {
			if err := c.finishAgain(ctx, ref); err != nil {
				return err
			}
		}
		if err := c.same(ctx, between.title+" between two finishes of each unit", false); err != nil {
			return err
		}
	}
	return nil
}

// deletionVectors are Java's way to delete in format version 3.
func (s *venue) deletionVectors(ctx context.Context) (*cities, error) {
	c, err := s.newCities(ctx, "cities3", " TBLPROPERTIES ('format-version'='3')")
	if err != nil {
		return nil, err
	}
	if err := c.exec(ctx, c.insertion(c.add("oslo", "riga", "bern"))); err != nil {
		return nil, err
	}
	if err := c.ask(c.java(), question{Do: "dvdelete", ID: "2"}); err != nil {
		return nil, err
	}
	c.remove("riga")
	if err := c.append(c.java(), "oslo"); err != nil {
		return nil, err
	}
	if err := c.exec(ctx, c.insertion(c.add("last"))); err != nil {
		return nil, err
	}
	return c, c.same(ctx, "version 3: Java's deletion vector between our appends", false)
}
