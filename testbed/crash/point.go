package main

import (
	"github.com/rhizodat/rhizodat-go/coordinator"
	"github.com/rhizodat/rhizodat-go/testbed/crash/plan"
)

// shape is which stores a unit reaches, and how.
type shape string

// The shapes. With a reader S3 goes before S4, else they run side by side.
const (
	shapeTwo     shape = "two"     // a and b write
	shapeReader  shape = "reader"  // and c is read, under a lock that guards the unit
	shapePayload shape = "payload" // and p is rolled forward
	shapeOne     shape = "one"     // only a writes: one phase
	shapeEvents  shape = "events"  // a and b write, and e is rolled forward
	shapeGraph   shape = "graph"   // a, b and g write
	shapeLake    shape = "lake"    // a and b write, and l is rolled forward
	// There is no other store: one phase.
	shapeEventsAlone shape = "events alone"
	shapeGraphAlone  shape = "graph alone"
	shapeLakeAlone   shape = "lake alone"
)

// alone reports whether the shape needs a lane of its third store only.
func (s shape) alone() bool {
	return s == shapeEventsAlone || s == shapeGraphAlone || s == shapeLakeAlone
}

// insert is a unit's write of one store.
func insert(store string, stores string) string {
	return "store:" + store + " INSERT INTO public.ledger VALUES ('" + plan.Txn + "', " + stores + ", 1)"
}

// insertUnseen is insert, of which the driver sees no command tag: only the
// server knows that it wrote, so that S3 is a message of its own.
func insertUnseen(store string, stores string) string {
	return "store:" + store + " WITH seen AS (INSERT INTO public.ledger VALUES ('" + plan.Txn + "', " + stores +
		", 1) RETURNING 1) SELECT count(*) FROM seen"
}

// eventRows is how many rows a unit has in a store that holds many of each.
const eventRows = "40"

// createNode is a unit's write of a graph.
func createNode(stores string) string {
	return "store:g CREATE (:Ledger {txn: '" + plan.Txn + "', stores: " + stores + "})"
}

const readC = "store:c SELECT pg_advisory_xact_lock(1)"

func (s shape) work() []string {
	switch s {
	case shapeTwo:
		return []string{insert("a", "2"), insert("b", "2")}
	case shapeReader:
		return []string{insert("a", "2"), readC, insert("b", "2")}
	case shapePayload:
		return []string{insert("a", "3"), insert("b", "3"), "book p 3"}
	case shapeOne:
		return []string{insert("a", "1")}
	case shapeEvents:
		return []string{insert("a", "3"), insert("b", "3"), "append e 3 " + eventRows}
	case shapeEventsAlone:
		return []string{"append e 1 " + eventRows}
	case shapeGraph:
		return []string{insert("a", "3"), createNode("3"), insert("b", "3")}
	case shapeGraphAlone:
		return []string{createNode("1")}
	case shapeLake:
		return []string{insert("a", "3"), insert("b", "3"), "append l 3 " + eventRows + " txn"}
	case shapeLakeAlone:
		return []string{"append l 1 " + eventRows + " txn"}
	}
	panic("no such shape: " + string(s))
}

// stores that a step works on one by one, in this shape.
func (s shape) stores(step coordinator.Step) []string {
	locked, third := []string{"a", "b"}, []string(nil)
	switch s {
	case shapeReader:
		third = []string{"c"}
	case shapePayload:
		third = []string{string(thirdPayload)}
	case shapeEvents:
		third = []string{string(thirdEvents)}
	case shapeLake:
		third = []string{string(thirdLake)}
	case shapeGraph:
		locked = append(locked, string(thirdGraph))
	case shapeEventsAlone:
		return alone(thirdEvents, step)
	case shapeGraphAlone:
		return alone(thirdGraph, step)
	case shapeLakeAlone:
		return alone(thirdLake, step)
	case shapeTwo, shapeOne:
	}
	switch step {
	case coordinator.S3:
		return append(locked, third...)
	case coordinator.S5:
		if s == shapeReader {
			return append(locked, third...)
		}
		return locked
	case coordinator.S8:
		return locked
	case coordinator.S9:
		if s == shapeReader { // it wrote nothing
			return nil
		}
		return third
	case coordinator.S1, coordinator.S2, coordinator.S4, coordinator.S6, coordinator.S7, coordinator.S10: // the unit's
	}
	return nil
}

// alone is the store of a unit that has one: it is staged and committed.
func alone(store third, step coordinator.Step) []string {
	if step == coordinator.S3 || step == coordinator.S8 {
		return []string{string(store)}
	}
	return nil
}

// point is one moment of one step.
type point struct {
	step    coordinator.Step
	after   bool
	name    string
	decided bool // S7 has been acknowledged when it is reached
}

// points lists every point that a unit of this shape passes, from the step
// table: before and after the step, and before and after each store's share.
func (s shape) points(split, shares bool) []point {
	var all []point
	for step := coordinator.S1; step <= coordinator.S10; step++ {
		for _, store := range s.places(step, shares) {
			for _, moment := range []coordinator.Moment{coordinator.Before, coordinator.After} {
				e := coordinator.StepEvent{Step: step, Moment: moment, Store: store}
				after := moment == coordinator.After
				all = append(all, point{step, after, e.Point(), s.decided(step, after, split)})
			}
		}
	}
	return all
}

// places of a step are the unit as a whole, which has no name, and the stores.
func (s shape) places(step coordinator.Step, shares bool) []string {
	stores := s.stores(step)
	switch {
	case step == coordinator.S9 && len(stores) == 0:
		return nil // nothing to roll forward
	case s.alone() && step > coordinator.S3:
		return stores // of S8: its one share is the whole step
	case shares:
		return append([]string{""}, stores...)
	}
	return []string{""}
}

func (s shape) decided(step coordinator.Step, after, split bool) bool {
	if s.alone() {
		return step == coordinator.S8 && after
	}
	return step >= coordinator.S8 || step == coordinator.S7 && after ||
		step == coordinator.S6 && after && !split // it travels with S7
}
