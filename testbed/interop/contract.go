package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/rhizodat/rhizodat-go/internal/s3gateway"
)

// contractTests are what of branches/iceberg's tests is played on other servers: the
// suite of all stores, and two workers on one change.
const contractTests = "^(TestContract|TestTwoWorkers|TestSleeper)$/^(sqlite_s3|rest_s3)$"

// suites is how often the suite of all stores is played by these.
const suites = 2

// contract plays tests of branches/iceberg on the Java project's own REST server,
// over an S3 server that keeps files.
func (l *lab) contract(ctx context.Context) (err error) {
	fmt.Println("== the suite of all stores, on an S3 gateway and the Java project's REST servlet")
	gateway, err := s3gateway.Launch(ctx)
	if errors.Is(err, s3gateway.ErrNoServer) {
		l.leftOut = append(l.leftOut, "S3 gateway: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.Close()) }()
	if err := gateway.MakeBucket(ctx, bucket); err != nil {
		return err
	}
	server, err := startServlet(ctx, l.plan.folder, l.dir+"/contract", []string{
		"s3.endpoint=" + gateway.Endpoint(), "s3.path-style-access=true", "client.region=" + s3gateway.Region,
		"s3.access-key-id=" + s3gateway.Key, "s3.secret-access-key=" + gateway.Secret(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", contractTests, "./branches/iceberg")
	test.Env = append(os.Environ(), "RHIZODAT_TEST_S3="+gateway.URL(bucket), "RHIZODAT_TEST_ICEBERG_REST="+server.url)
	out, failure := test.CombinedOutput()
	ran, passed := 0, 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if _, said, found := strings.Cut(line, "branchtest: "); found {
			fmt.Println("   " + said)
			ran++
		}
		if strings.HasPrefix(line, "--- PASS: TestContract/") && strings.Count(line, "/") == 1 {
			passed++
		}
	}
	failed := 0
	if failure != nil {
		failed = max(1, strings.Count(string(out), "--- FAIL: "))
		fmt.Printf("%s\n%v\n", out, failure)
	}
	l.board.Exactly("interop_suites_ran", ran, suites)
	l.board.Exactly("interop_suites_passed", passed, suites)
	l.board.Exactly("interop_suites_failed", failed, 0)
	return nil
}

// bucket of the warehouses.
const bucket = "lake"
