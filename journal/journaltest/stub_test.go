package journaltest_test

import (
	"context"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
)

func (stub) Leases(context.Context) (journal.Leases, error) { return stubLeases{}, nil }
func (stub) Steps(context.Context) (journal.Steps, error)   { return stubSteps{}, nil }

type stubLeases struct{}

func (stubLeases) Acquire(context.Context, journal.LeaseRequest) (journal.Lease, journal.Answer, error) {
	return journal.Lease{}, 0, nil
}

func (stubLeases) Renew(context.Context, []journal.LeaseRenewal) ([]journal.Answer, error) {
	return nil, nil
}
func (stubLeases) Release(context.Context, journal.Lease) (journal.Answer, error) { return 0, nil }
func (stubLeases) Get(context.Context, string) (journal.Lease, error)             { return journal.Lease{}, nil }

func (stubLeases) List(context.Context) ([]journal.Lease, error) { return nil, nil }

type stubSteps struct{}

func (stubSteps) Claim(context.Context, journal.StepRequest) (journal.Step, journal.Answer, error) {
	return journal.Step{}, 0, nil
}

func (stubSteps) Renew(context.Context, []journal.StepRenewal) ([]journal.Answer, error) {
	return nil, nil
}

func (stubSteps) Record(context.Context, journal.StepRecord) (journal.Answer, error) { return 0, nil }

func (stubSteps) Release(context.Context, journal.StepKey, string) (journal.Answer, error) {
	return 0, nil
}

func (stubSteps) Get(context.Context, journal.StepKey) (journal.Step, error) {
	return journal.Step{}, nil
}
func (stubSteps) List(context.Context, func(journal.Step) error) error { return nil }
func (stubSteps) Remove(context.Context, time.Time, int) (int, error)  { return 0, nil }
