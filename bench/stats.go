package main

import (
	"fmt"
	"slices"
	"time"
)

// quartiles of a sample: Q1, median, Q3.
type quartiles struct{ q1, median, q3 float64 }

func quartilesOf(sample []float64) quartiles {
	s := slices.Sorted(slices.Values(sample))
	at := func(p float64) float64 {
		if len(s) == 0 {
			return 0
		}
		x := p * float64(len(s)-1)
		i := int(x)
		if i+1 >= len(s) {
			return s[len(s)-1]
		}
		return s[i] + (x-float64(i))*(s[i+1]-s[i])
	}
	return quartiles{at(.25), at(.5), at(.75)}
}

func (q quartiles) String() string {
	return fmt.Sprintf("%.3f [%.3f … %.3f]", q.median, q.q1, q.q3)
}

// paired runs ours and theirs in turn, rounds times, in an order that changes
// each round, and returns the ratios theirs/ours of each round: above 1 ours is
// faster. The machine's speed drifts; what is measured side by side does not.
func paired(rounds int, ours, theirs func() time.Duration) (ratio quartiles, ourMedian, theirMedian time.Duration) {
	var ratios, ourTimes, theirTimes []float64
	for i := range rounds {
		var o, t time.Duration
		if i%2 == 0 {
			o, t = ours(), theirs()
		} else {
			t, o = theirs(), ours()
		}
		ratios = append(ratios, float64(t)/float64(o))
		ourTimes = append(ourTimes, float64(o))
		theirTimes = append(theirTimes, float64(t))
	}
	return quartilesOf(ratios), time.Duration(quartilesOf(ourTimes).median), time.Duration(quartilesOf(theirTimes).median)
}

// figure prints one line that a script can read.
func figure(name string, value any, goal string, ok bool) {
	word := "ok"
	if !ok {
		word = "short"
	}
	fmt.Printf("figure %s %v %s %s\n", name, value, goal, word)
}
