require(compact_config, package "p q");
# 12 "other \"file\""
x :: Message("\\ \" \<48 /* > */ 45> \
" '$a\' \<4 8>, // end )
# 3
 /* ) */ (nested), ${y-d e}, ${z[1]} "$cmd" $cmd $(h.x "$y"));
