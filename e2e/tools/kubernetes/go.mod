module heddle/kubernetes

go 1.24
