// Package canon spells every value of an Iceberg table in one way, so that what
// different engines read can be compared with what was written: numbers and times
// are the stored integer (days, micros, nanos) as text, float and double are their
// bits in hexadecimal, binary and fixed are hexadecimal, a list is a list, a map
// is a sorted list of pairs, a struct is an object. NULL is nil.
//
// It converts from and to what database/sql carries (see the comment of package
// icevalue). The peers in other languages have the same in python/peer.py and
// java/peer: a difference between them is a difference in the tables or in a peer.
package canon
