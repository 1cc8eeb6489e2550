#include "core/explain/decompose.h"
#include "core/explain/target.h"
#include "core/explain/tensor_io.h"
#include <iostream>
using namespace addend;
int main(int argc,char**argv){
  try{
  std::string m=argv[1];
  auto model=LoadTorchScript("docs/examples/models/"+m+"/model.pt");
  auto f=ReadTensorFile("docs/examples/models/"+m+"/sample.safetensors");
  Input in; in.value=*f.Find("input");
  if(m=="breast_cancer"){ in.split=Split::AlongDims({1}); in.baseline=Baseline::Of(ReadTensorFile("docs/examples/models/breast_cancer/baseline.npy").tensors[0].second);}
  if(m=="digits"){ in.split=Split::AlongDims({2,3}); in.baseline=Baseline::Of(0.0);}
  if(m=="language"){ in.split=Split::ByLabels(*f.Find("segments")); in.baseline=Baseline::Token(0);}
  DecomposeOptions o; for(int i=2;i<argc;i++){ std::string a=argv[i]; auto e=a.find('='); if(a=="all") o.everything=true; else if(e==std::string::npos) o.probes.push_back(a); else SetPolicyField(o.policy,a.substr(0,e),a.substr(e+1)); }
  auto d=Trace(model).Decompose({in},o);
  auto c=Contribute(d.outputs[0].value,d.outputs[0].composition,ParseTarget("top1"));
  std::cout<<"value "<<c.value<<" ref "<<c.reference<<" left "<<c.leftover<<" rec "<<c.recovery-c.value<<" numc "<<d.numc<<"\n";
  auto&r=d.report; std::cout<<"ops "<<r.operators<<" nodes "<<r.nodes<<" worst "<<r.worst_recovery_error<<" br "<<r.worst_bracket<<" t "<<r.trace_seconds<<" "<<r.linearize_seconds<<" "<<r.sweep_seconds<<"\n";
  for(auto&x:WorstFirst(r)) std::cout<<x.check.call<<" "<<x.call<<" "<<KindName(x.check.kind)<<" rec "<<x.check.recovery_error<<"/"<<x.check.tolerance<<" br "<<x.check.bracket<<"/"<<x.check.bracket_bound<<" lo "<<x.check.leftover<<" "<<x.position.Describe()<<"\n";
  for(auto&n:r.notes) std::cout<<n<<"\n";
  for(auto&p:d.probes) std::cout<<p.name<<" "<<p.value.sizes()<<"\n";
  }catch(const std::exception&e){std::cerr<<e.what()<<"\n";return 2;}
}
