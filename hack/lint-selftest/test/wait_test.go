package test

import (
	"fmt"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	fmt.Println(time.Now())
	time.Sleep(time.Second) // want forbidigo
}
