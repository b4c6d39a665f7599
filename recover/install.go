package recovery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/journal"
)

// Step of Install or Adopt, in words.
type Step struct {
	Where string `json:"where"` // "journal" or a store's name
	Done  string `json:"done"`
}

// Install makes or upgrades the journal's tables and every store's marker and
// meta tables, and binds and registers the stores. It is idempotent. A store
// that belongs to another journal is left alone and is a *Refused in the error,
// beside whatever else could not be done.
func (w *Worker) Install(ctx context.Context) ([]Step, error) {
	var steps []Step
	if installer, ok := w.cfg.Journal.(branches.Installer); ok {
		if err := installer.Install(ctx); err != nil {
			return steps, err
		}
		steps = append(steps, Step{"journal", "tables are there"})
	}
	id, err := w.registry.Identify(ctx)
	if err != nil {
		return steps, err
	}
	var errs []error
	for _, name := range sortedKeys(w.cfg.Stores) {
		if err := w.installStore(ctx, id, name); err != nil {
			errs = append(errs, fmt.Errorf("rhizodat: install store %s: %w", name, err))
			continue
		}
		steps = append(steps, Step{name, "tables are there, registered with journal " + id.ID})
	}
	return steps, errors.Join(errs...)
}

func (w *Worker) installStore(ctx context.Context, j journal.Identity, name string) error {
	store := w.cfg.Stores[name]
	if installer, ok := store.(branches.Installer); ok {
		if err := installer.Install(ctx); err != nil {
			return err
		}
	}
	found, err := w.identify(ctx, name, store)
	if err != nil {
		return err
	}
	if refused := found.refusal(name, j); refused != nil {
		return refused
	}
	return w.enroll(ctx, j, name, &found)
}

// InstallSQL is what Install would run, for a DBA to run instead. It connects
// to nothing; binding and registering the stores is left to the first pass.
func (w *Worker) InstallSQL() string {
	var b strings.Builder
	if installer, ok := w.cfg.Journal.(branches.Installer); ok {
		fmt.Fprintf(&b, "-- journal\n%s\n", installer.InstallSQL())
	}
	for _, name := range sortedKeys(w.cfg.Stores) {
		if installer, ok := w.cfg.Stores[name].(branches.Installer); ok {
			fmt.Fprintf(&b, "\n-- store %s\n%s\n", name, installer.InstallSQL())
		}
	}
	return b.String()
}

// ErrNothingToAdopt means that the store is what the journal knows.
var ErrNothingToAdopt = errors.New("rhizodat: adopt store: journal and store agree already")

// Adoption is what Adopt would do, for a person to say yes to.
type Adoption struct {
	Store   string  `json:"store"`
	Refused Refused `json:"refused"` // why it is left alone now
	Steps   []Step  `json:"steps"`
}

// PlanAdopt says what Adopt would do. ErrNothingToAdopt when there is nothing.
func (w *Worker) PlanAdopt(ctx context.Context, name string) (Adoption, error) {
	plan, _, _, err := w.planAdopt(ctx, name)
	return plan, err
}

// Adopt makes a store this journal's, and this journal that store's, by a
// person's decision: the journal's own place, the store's binding, the registry's
// entry and its count of sweeps, whichever of them disagree. *Refused when two
// stores share a place, or a store is in that of a drevo journal, which no decision
// mends.
func (w *Worker) Adopt(ctx context.Context, name string) (Adoption, error) {
	plan, j, id, err := w.planAdopt(ctx, name)
	if err != nil {
		return plan, err
	}
	if j.Moved() {
		adopter, ok := w.cfg.Journal.(journal.Adopter)
		if !ok {
			return plan, &plan.Refused
		}
		if err := adopter.Adopt(ctx, j.Here); err != nil {
			return plan, err
		}
		j.Place = j.Here
	}
	if id.keeper != nil {
		bound := id.bound(j)
		if bound != id.meta {
			ok, err := id.keeper.Bind(ctx, id.meta, bound)
			if err != nil || !ok {
				return plan, errors.Join(err, errAdoptRaced)
			}
		}
	}
	entry := journal.Registered{Name: name, Place: id.place, StoreID: id.meta.StoreID, Sweeps: max(id.entry.Sweeps, id.meta.Sweeps)}
	if !id.known {
		if id.entry, err = w.registry.Register(ctx, entry); err != nil {
			return plan, err
		}
	}
	if id.entry != entry {
		ok, err := w.registry.Rebind(ctx, id.entry, entry)
		if err != nil || !ok {
			return plan, errors.Join(err, errAdoptRaced)
		}
	}
	w.log.WarnContext(ctx, "rhizodat: store adopted by a person", "store", name, "reason", plan.Refused.Reason)
	return plan, nil
}

var errAdoptRaced = errors.New("rhizodat: adopt store: it was changed by somebody else meanwhile: look again")

func (w *Worker) planAdopt(ctx context.Context, name string) (Adoption, journal.Identity, identity, error) {
	plan := Adoption{Store: name}
	store, ok := w.cfg.Stores[name]
	if !ok {
		return plan, journal.Identity{}, identity{}, fmt.Errorf("rhizodat: adopt store %s: this DSN has %s", name, strings.Join(sortedKeys(w.cfg.Stores), ", "))
	}
	j, err := w.registry.Identify(ctx)
	if err != nil {
		return plan, j, identity{}, err
	}
	id, err := w.identify(ctx, name, store)
	if err != nil {
		return plan, j, id, err
	}
	refused := id.refusal(name, j)
	if refused == nil {
		return plan, j, id, ErrNothingToAdopt
	}
	plan.Refused = *refused
	if refused.Reason == ReasonShared {
		return plan, j, id, refused
	}
	if j.Moved() {
		plan.Steps = append(plan.Steps, Step{"journal", fmt.Sprintf("its place becomes %s, it was %s", j.Here, j.Place)})
	}
	if id.keeper != nil && id.bound(j) != id.meta {
		plan.Steps = append(plan.Steps, Step{name, fmt.Sprintf("belongs to journal %s at %s, it belonged to %s at %s", j.ID, j.Here, id.meta.JournalID, id.meta.JournalPlace)})
	}
	if !id.known || id.entry.Place != id.place || id.entry.StoreID != id.meta.StoreID {
		plan.Steps = append(plan.Steps, Step{"journal", fmt.Sprintf("knows store %s as %s (%s)", name, id.place, id.meta.StoreID)})
	}
	if id.meta.Sweeps > id.entry.Sweeps {
		plan.Steps = append(plan.Steps, Step{"journal", fmt.Sprintf("its count of sweeps of store %s becomes %d, it was %d", name, id.meta.Sweeps, id.entry.Sweeps)})
	}
	return plan, j, id, nil
}
