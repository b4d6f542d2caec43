Creator "igraph version 0.10"
graph
[
  directed 0
  node [ id 0 label "Ward 1" poisoned 0 graphics [ x 10.0 y 20.0 ] ]
  node [ id 1 label "Ward 2" poisoned 1 graphics [ x 30.0 y 20.0 ] ]
  node [ id 2 label "Küche" poisoned 0 graphics [ x 20.0 y 40.0 ] ]
  edge [ source 0 target 1 ]
  edge [ source 1 target 2 ]
]
