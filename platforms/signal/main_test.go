package signal

import (
	"testing"

	"go.uber.org/goleak"

	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/signaltest"
)

// A route of the fake that no test of the adapter calls fails the package.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(faults.Called(signaltest.Routes, signaltest.ForOthers...)))
}
