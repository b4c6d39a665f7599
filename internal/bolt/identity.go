package bolt

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/rhizodat/rhizodat-go/branches"
)

// IdentityLabel is the label of the node that tells a graph from every other.
const IdentityLabel = "DatGraph"

// The node that tells a graph from every other, whatever name or address leads
// to it: drevo itself has none. Whoever is installed in a graph first, a store or
// a journal, makes it. Format: label and title DatGraph, property id.
const (
	findIdentity = `MATCH (g:` + IdentityLabel + ` {title: 'DatGraph'}) RETURN g.id`
	makeIdentity = `CREATE (g:` + IdentityLabel + ` {title: 'DatGraph', id: $id})`
)

// Place says where the graph is, in words that are the same however it is
// reached: drevo:<id of the graph>/<name>. branches.ErrNotInstalled where nobody
// was installed yet.
func (g *Graph) Place(ctx context.Context) (branches.Place, error) {
	rows, err := g.Read(ctx, findIdentity, nil)
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", branches.ErrNotInstalled
	}
	return g.place(rows)
}

// Identify gives the graph its identity inside of an installation, unless it has
// one, and returns the graph's place.
func (g *Graph) Identify(ctx context.Context, tx *Tx) (branches.Place, error) {
	rows, err := tx.Run(ctx, findIdentity, nil)
	if err != nil {
		return "", err
	}
	if len(rows) > 0 {
		return g.place(rows)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	if _, err := tx.Run(ctx, makeIdentity, map[string]any{"id": id.String()}); err != nil {
		return "", err
	}
	return g.placed(id.String()), nil
}

func (g *Graph) place(rows [][]any) (branches.Place, error) {
	row, err := Only(rows, nil)
	if err != nil {
		return "", err
	}
	id, _ := row[0].(string)
	if id == "" {
		return "", errors.New("the node DatGraph has no id")
	}
	return g.placed(id), nil
}

func (g *Graph) placed(id string) branches.Place {
	return branches.Place("drevo:" + id + "/" + g.name)
}
