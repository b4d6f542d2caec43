graph [
  node [ id 1 label "a" ]
  node [ id 2 label "b" ]
  edge [ source 1 target 2 ]
  edge [ source 2 target 1 ]
]
