// Package crash kills the real daemon and looks at what people see afterwards. It holds no code but tests:
// they build cmd/herald with the tag failpoint, run it between a fake Telegram and a scripted model, kill it
// at every commit edge of accept, turn and delivery (TestMatrix) and at random (TestRandom), start it again,
// and assert the promises P1 to P5 and P11 on what the fakes saw and on the database that is left.
//
// Run it with `make crash`; `make torture` makes 1,000 random runs. Without the tag failpoint there is
// nothing to run.
package crash
