// Package controllers wires drivers.
package controllers

import (
	"fmt"
	"time"

	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
)

func talks() {
	fmt.Println("hello")    // want forbidigo
	fmt.Printf("hello\n")   // want forbidigo
	time.Sleep(time.Second) // want forbidigo
	_ = fmt.Sprint("hello")
}
