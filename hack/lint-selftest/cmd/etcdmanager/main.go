// Command etcdmanager may print.
package main

import "fmt"

func main() { fmt.Println("hello") }
