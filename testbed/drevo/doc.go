// Package drevo holds the stories of drevo's contract: what docs/drevo.md and the
// branch and the journal rely on, played with the official Go driver against
// drevo-rig, which is drevo's real storage engine behind a Bolt front of ours. See
// README.md. It has nothing but tests.
package drevo
